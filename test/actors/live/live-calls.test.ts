import { describe, expect, it, onTestFinished } from 'vitest';
import { createCallRegistry } from '../../../actors/call-registry.ts';
import { createCluster } from '../../../actors/cluster/cluster.ts';
import { createLiveCalls } from '../../../actors/live/live-calls.actor.ts';
import type { LiveNews } from '../../../actors/live/live-calls.ts';
import type { NodeRow } from '../../../storage/queries/nodes.ts';
import { eventually } from '../../eventually.ts';
import { RelayHub } from '../cluster/relay-hub.ts';
import { callRow, createTestClock, createTestLogger, FakeMediaSession, liveCall } from '../fakes.ts';

const LEVELS = { agent: { levelDbov: -20, isSpeaking: true } };
const MEASURED = { type: 'levels.measured', levels: LEVELS } as const;

function openNodes(count: number) {
  const hub = new RelayHub();
  const clock = createTestClock();
  const boots = Array.from({ length: count }, (_, index) => `boot-${index}`);
  const nodes = boots.map((boot) => {
    const peers = boots.filter((each) => each !== boot).map((each) => ({ boot: each }) as NodeRow);
    const listeners: ((rows: readonly NodeRow[]) => void)[] = [];
    const directory = {
      boot,
      peers: () => peers,
      onRenewed: (emit: (typeof listeners)[number]) => void listeners.push(emit),
    };
    const logger = createTestLogger();
    const openRelay = async () => hub.connect(boot);
    const cluster = createCluster({ nodes: directory, openRelay, clock, logger });
    const registry = createCallRegistry();
    const interim = new Map<string, boolean>();
    const transcripts = { setHypotheses: (callId: string, isOn: boolean) => void interim.set(callId, isOn) };
    const liveCalls = createLiveCalls({ registry, transcripts, cluster, nodes: directory, clock, logger });
    onTestFinished(() => liveCalls[Symbol.dispose]());
    const add = (callId: string, workspaceId: string) => {
      const { signal } = new AbortController();
      const media = new FakeMediaSession({ sessionId: callId, parties: [], signal, onEvent() {} });
      const call = { ...liveCall(callRow({ callId, workspaceId })), media };
      registry.add(call);
      return { call, media };
    };
    const watch = (workspaceId: string, signal = new AbortController().signal) => {
      const news: LiveNews[] = [];
      liveCalls.watch(workspaceId, (item) => news.push(item), signal);
      return news;
    };
    const renew = () => listeners.forEach((emit) => void emit(peers));
    return { liveCalls, add, watch, renew, interim };
  });
  return { hub, clock, nodes };
}

describe('live calls of a node', () => {
  it('measures the calls of a workspace only while it is watched', async () => {
    const { clock, nodes } = openNodes(1);
    const [node] = nodes as [(typeof nodes)[number]];
    const [own, other] = [node.add('call-1', 'acme'), node.add('call-2', 'other')];
    const leaving = new AbortController();
    const news = node.watch('acme', leaving.signal);
    expect([own.media.isMeasured, other.media.isMeasured]).toEqual([true, false]);
    expect([...node.interim]).toEqual([
      ['call-1', true],
      ['call-2', false],
    ]);
    const late = node.add('call-3', 'acme');
    clock.advance(1000);
    expect(late.media.isMeasured).toBe(true);
    node.liveCalls.measured(own.call, MEASURED);
    node.liveCalls.measured(other.call, MEASURED);
    node.liveCalls.changed('call-1');
    node.liveCalls.changed('call-2');
    expect(news).toEqual([{ type: 'levels', callId: 'call-1', levels: LEVELS }, { type: 'changed' }]);
    leaving.abort();
    clock.advance(1000);
    expect([own.media.isMeasured, late.media.isMeasured]).toEqual([false, false]);
    expect([...node.interim.values()]).toEqual([false, false, false]);
    node.liveCalls.changed('call-1');
    expect(news).toHaveLength(2);
  });

  it('reports hypotheses with their access rules', () => {
    const { nodes } = openNodes(1);
    const [node] = nodes as [(typeof nodes)[number]];
    const { call } = node.add('call-1', 'acme');
    const news = node.watch('acme');
    const times = { startMs: 100, endMs: 300 };
    node.liveCalls.publishHypothesis(call, { leg: 'customer', text: 'hello', ...times });
    node.liveCalls.publishHypothesis(call, { leg: 'customer', text: '', ...times });
    const { direction, createdByUserId } = call.row;
    const leg = { callId: 'call-1', access: { direction, createdByUserId }, leg: 'customer', role: 'customer' };
    expect(news).toEqual([{ type: 'hypothesis', hypothesis: { ...leg, text: 'hello', ...times } }]);
  });

  it('notifies all watchers of a call without a node', () => {
    const { nodes } = openNodes(1);
    const news = nodes[0]!.watch('acme');
    nodes[0]!.liveCalls.changed('taken over');
    expect(news).toEqual([{ type: 'changed' }]);
  });
});

describe('live calls of two nodes', () => {
  it('forward events and levels to a watcher on the other node, and measure until it leaves', async () => {
    const { clock, nodes } = openNodes(2);
    const [here, there] = nodes as [(typeof nodes)[number], (typeof nodes)[number]];
    for (const node of nodes) node.renew();
    const { call, media } = there.add('call-1', 'acme');
    const strange = there.add('call-2', 'other');
    const leaving = new AbortController();
    const news = here.watch('acme', leaving.signal);
    await eventually(() => {
      here.renew();
      expect(media.isMeasured).toBe(true);
    });
    expect(strange.media.isMeasured).toBe(false);
    await eventually(() => {
      there.liveCalls.measured(call, MEASURED);
      expect(news).toContainEqual({ type: 'levels', callId: 'call-1', levels: LEVELS });
    });
    news.length = 0;
    there.liveCalls.changed('call-2');
    there.liveCalls.changed('call-1');
    await eventually(() => expect(news).toContainEqual({ type: 'changed' }));
    leaving.abort();
    clock.advance(6000);
    expect(media.isMeasured).toBe(false);
  });

  it('look for changes with every renewal, because messages between nodes can be lost', () => {
    const { hub, nodes } = openNodes(2);
    hub.isSilent = true;
    const news = nodes[0]!.watch('acme');
    nodes[0]!.renew();
    expect(news).toEqual([{ type: 'changed' }]);
  });
});
