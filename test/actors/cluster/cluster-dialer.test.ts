import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CallFeed, createCallFeed } from '../../../actors/call-feed.ts';
import { type PublicCallEvent, presentCall } from '../../../actors/call-view.ts';
import { createCluster } from '../../../actors/cluster/cluster.ts';
import { createClusterDialer } from '../../../actors/cluster/cluster-dialer.ts';
import type { NodeDialer } from '../../../actors/dialer.actor.ts';
import type { PlaceCallRequest } from '../../../actors/dialer.ts';
import { TandemError } from '../../../machines/errors.ts';
import { type Clock, systemClock } from '../../../runtime/clock.ts';
import type { NodeRelay } from '../../../storage/nodes/node-relay.ts';
import { getCallById } from '../../../storage/queries/calls.ts';
import type { NodeReport, NodeRow } from '../../../storage/queries/nodes.ts';
import { eventually } from '../../eventually.ts';
import { PLACEMENT } from '../../http/fake-dialer.ts';
import { partial } from '../../partial.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createTestClock, createTestLogger } from '../fakes.ts';
import { moveTo, seedCaller } from '../seeds.ts';
import { RelayHub } from './relay-hub.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const IDLE: NodeReport = { isDraining: false, liveCalls: 0, mediaLoad: 0, canPlaceCalls: true };

/** The boot with every browser's phone; null means the receiving node. */
let browserAt: string | null = null;
afterEach(() => {
  browserAt = null;
});

describe('placement in a cluster', () => {
  it('goes to the node with the fewest live calls, preferring the receiving node', async () => {
    const { nodes } = openNodes([{ liveCalls: 3 }, { liveCalls: 1 }, { liveCalls: 3 }]);
    const { request } = await caller();
    await nodes[0]!.dialer.place(request());
    expect(placedOn(nodes)).toEqual([0, 1, 0]);
    await nodes[1]!.dialer.place(request());
    expect(placedOn(nodes)).toEqual([0, 2, 0]);
  });

  it("counts placements sent since a node's last report", async () => {
    const { nodes } = openNodes([{ liveCalls: 2 }, { liveCalls: 0 }]);
    const { request } = await caller();
    for (let call = 0; call < 4; call += 1) await nodes[0]!.dialer.place(request());
    expect(placedOn(nodes)).toEqual([2, 2]);
  });

  it('avoids nodes that drain or cannot place calls, including the receiving one', async () => {
    const { nodes } = openNodes([
      { canPlaceCalls: false, isDraining: true },
      { liveCalls: 0, canPlaceCalls: false },
      { liveCalls: 9 },
    ]);
    const { request } = await caller();
    await nodes[0]!.dialer.place(request());
    expect(placedOn(nodes)).toEqual([0, 0, 1]);
  });

  it('falls back to the receiving node, with the same reference, if the other one is silent', async () => {
    const { nodes, hub } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }]);
    hub.disconnect(nodes[1]!.boot);
    const { request } = await caller();
    expect(await nodes[0]!.dialer.place(request({ referenceId: 'order-1' }))).toMatchObject({ placed: true });
    expect(placedOn(nodes)).toEqual([1, 0]);
    expect(nodes[0]!.local.placed[0]).toMatchObject({ referenceId: 'order-1' });
  });

  it('falls back to the receiving node if the other one is lost while placing', async () => {
    const { nodes } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }]);
    nodes[1]!.local.onPlace = () => {
      nodes[0]!.lose(nodes[1]!.boot);
      return new Promise(() => {});
    };
    const { request } = await caller();
    expect(await nodes[0]!.dialer.place(request())).toMatchObject({ placed: true });
    expect(placedOn(nodes)).toEqual([1, 0]);
  });

  it('falls back to the receiving node while the relay cannot open', async () => {
    const { nodes } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }], { openRelay: () => new Promise(() => {}) });
    const { request } = await caller();
    expect(await nodes[0]!.dialer.place(request())).toMatchObject({ placed: true });
    expect(placedOn(nodes)).toEqual([1, 0]);
  });

  it('falls back to the receiving node if the other one cannot reach the database', async () => {
    const { nodes } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }]);
    nodes[1]!.local.onPlace = async () => {
      throw Object.assign(new Error('the connection was closed'), { code: 'CONNECTION_CLOSED' });
    };
    const { request } = await caller();
    expect(await nodes[0]!.dialer.place(request())).toMatchObject({ placed: true });
    expect(placedOn(nodes)).toEqual([1, 0]);
  });

  it('forwards a refusal of the other node with code, details and Retry-After', async () => {
    const { nodes } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }]);
    const refusal = new TandemError('C2C_RATE_LIMITED', 'Slow down.', { retryAfterS: 12, details: { limit: 20 } });
    nodes[1]!.local.refusal = refusal;
    const { request } = await caller();
    await expect(nodes[0]!.dialer.place(request())).rejects.toMatchObject({
      ...{ code: 'C2C_RATE_LIMITED', message: 'Slow down.', retryAfterS: 12, details: { limit: 20 } },
    });
    expect(placedOn(nodes)).toEqual([0, 0]);
  });

  it("goes to the node with the browser's phone, or to another one if that one cannot place it", async () => {
    const { nodes } = openNodes([{ liveCalls: 1 }, { liveCalls: 5 }, { liveCalls: 0 }]);
    browserAt = nodes[1]!.boot;
    const { request } = await caller();
    const place = () => nodes[0]!.dialer.place(request({ agentNumber: null, agentUserId: 7 }));
    await place();
    expect(placedOn(nodes)).toEqual([0, 1, 0]);
    nodes[1]!.local.refusal = new TandemError('SHUTTING_DOWN', 'The server is shutting down.');
    await place();
    expect(placedOn(nodes)).toEqual([1, 1, 0]);
    nodes[1]!.row.canPlaceCalls = false;
    await place();
    expect(placedOn(nodes)).toEqual([1, 1, 1]);
  });

  it("goes to another node if the receiving one has the browser's phone and drains", async () => {
    const { nodes } = openNodes([{ liveCalls: 0, canPlaceCalls: false }, { liveCalls: 5 }]);
    const { request } = await caller();
    await nodes[0]!.dialer.place(request({ agentNumber: null, agentUserId: 7 }));
    expect(placedOn(nodes)).toEqual([0, 1]);
  });

  it('falls back to the receiving node if the other one is fully loaded', async () => {
    const { nodes } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }]);
    nodes[1]!.local.refusal = new TandemError('no_free_channel', 'The recognizers are fully loaded.');
    const { request } = await caller();
    expect(await nodes[0]!.dialer.place(request())).toMatchObject({ placed: true });
    expect(placedOn(nodes)).toEqual([1, 0]);
  });

  it("stays on the receiving node if no other has the browser's phone", async () => {
    const { nodes } = openNodes([{ liveCalls: 5 }, { liveCalls: 0 }]);
    const { request } = await caller();
    await nodes[0]!.dialer.place(request({ agentNumber: null, agentUserId: 7 }));
    expect(placedOn(nodes)).toEqual([1, 0]);
  });
});

describe('command for a call in a cluster', () => {
  it("reaches the call's node, and returns the call as stored afterwards", async () => {
    const { nodes } = openNodes([{}, {}]);
    const { call, target } = await liveCall({ ownerBoot: nodes[1]!.boot });
    nodes[1]!.local.onHangup = async () => {
      await database.sql`update calls set state = 'completed' where call_id = ${call.callId}`;
    };
    expect(await nodes[0]!.dialer.hangup(target)).toMatchObject({ call_id: call.callId, state: 'completed' });
    expect(nodes.map(({ local }) => local.hangups.length)).toEqual([0, 1]);
  });

  it('waits for digits that take longer than a minute to press, behind seven such requests', async () => {
    const clock = createTestClock();
    const { nodes } = openNodes([{}, {}], { clock });
    const { call, target } = await liveCall({ ownerBoot: nodes[1]!.boot });
    const pressing = Promise.withResolvers<void>();
    const pressed = Promise.withResolvers<void>();
    nodes[1]!.local.onControl = () => {
      pressing.resolve();
      return pressed.promise;
    };
    const answer = nodes[0]!.dialer.control(target, {
      ...{ type: 'dtmf', leg: 'customer', digits: '1'.repeat(64), durationMs: 2000 },
    });
    await pressing.promise;
    // The other node has acknowledged the command.
    await eventually(() => expect(clock.waiting().filter((ms) => ms > 1_000)).toHaveLength(1));
    clock.advance(8 * 64 * 2080);
    pressed.resolve();
    expect(await answer).toMatchObject({ call_id: call.callId });
  });

  it('fails within a second if that node is silent or lost', async () => {
    const { nodes, hub } = openNodes([{}, {}]);
    hub.isSilent = true;
    const { target } = await liveCall({ ownerBoot: nodes[1]!.boot });
    const refused = { code: 'NODE_UNREACHABLE', status: 503, retryAfterS: 5 };
    await expect(nodes[0]!.dialer.hangup(target)).rejects.toMatchObject(refused);
    const lost = await liveCall({ ownerBoot: 'a boot that is gone' });
    await expect(nodes[0]!.dialer.hangup(lost.target)).rejects.toMatchObject(refused);
  });

  it('fails until the calls of a lost node are taken over, also on the only node left', async () => {
    const { nodes } = openNodes([{}, {}]);
    const { call, target } = await liveCall({ ownerBoot: nodes[1]!.boot });
    nodes[0]!.lose(nodes[1]!.boot);
    const { dialer, local, boot } = nodes[0]!;
    await expect(dialer.hangup(target)).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    expect(local.hangups).toEqual([]);
    await database.sql`update calls set state = 'unknown', owner_boot = ${boot} where call_id = ${call.callId}`;
    await dialer.hangup(target);
    expect(local.hangups).toEqual([target]);
  });

  it('completes before its node closes', async () => {
    const { nodes } = openNodes([{}, {}]);
    const { target } = await liveCall({ ownerBoot: nodes[1]!.boot });
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    nodes[1]!.local.onHangup = () => {
      started.resolve();
      return finish.promise;
    };
    const answer = nodes[0]!.dialer.hangup(target);
    await started.promise;
    const closed = nodes[1]!.close();
    finish.resolve();
    expect(await answer).toMatchObject({ call_id: target.callId });
    await closed;
  });

  it('stays on the receiving node for its own calls, finished calls and those of other workspaces', async () => {
    const { nodes } = openNodes([{}, {}]);
    const own = await liveCall({ ownerBoot: nodes[0]!.boot });
    await nodes[0]!.dialer.hangup(own.target);
    const finished = await liveCall({ ownerBoot: nodes[1]!.boot });
    await database.sql`update calls set state = 'completed' where call_id = ${finished.call.callId}`;
    await nodes[0]!.dialer.hangup(finished.target);
    const foreign = await liveCall({ ownerBoot: nodes[1]!.boot });
    await nodes[0]!.dialer.hangup({ ...foreign.target, workspaceId: randomUUID() });
    expect(nodes.map(({ local }) => local.hangups.length)).toEqual([3, 0]);
  });
});

describe('events of a call on another node', () => {
  it('reach local watchers until they leave, and arrive once for local calls', async () => {
    const { nodes } = openNodes([{}, {}]);
    const { call } = await liveCall({ ownerBoot: nodes[1]!.boot });
    const seen: number[] = [];
    const left = new AbortController();
    nodes[0]!.dialer.watch(call.callId, ({ sequence }) => void seen.push(sequence), left.signal);
    // The latest stored event shows that the subscription is active.
    await eventually(() => expect(seen).toEqual([2]));
    const event = partial<PublicCallEvent>({ sequence: 3, event: 'dtmf.received' });
    nodes[1]!.feed.publish(call.callId, event);
    await eventually(() => expect(seen).toEqual([2, 3]));
    left.abort();
    nodes[1]!.feed.publish(call.callId, event);
    const own = await liveCall({ ownerBoot: nodes[0]!.boot });
    nodes[0]!.dialer.watch(own.call.callId, ({ sequence }) => void seen.push(sequence), new AbortController().signal);
    nodes[0]!.feed.publish(own.call.callId, event);
    await eventually(() => expect(seen).toEqual([2, 3, 3]));
  });
});

type FakeLocal = ReturnType<typeof fakeLocal>;

function openNodes(
  reports: Partial<NodeReport>[],
  relay: { openRelay?: () => Promise<NodeRelay>; clock?: Clock } = {},
) {
  const hub = new RelayHub();
  const boots = reports.map(() => randomUUID());
  const rows = reports.map(
    (report, index) =>
      ({ ...IDLE, ...report, node: `node-${index}`, boot: boots[index]!, leaseUntil: new Date(0) }) as NodeRow,
  );
  const nodes = rows.map((row, index) => {
    let peers = rows.filter((each) => each !== row);
    const listeners: ((rows: NodeRow[]) => void)[] = [];
    const directory = {
      node: row.node,
      boot: row.boot,
      peers: () => peers,
      onRenewed(listener: (rows: NodeRow[]) => void) {
        listeners.push(listener);
        listener(peers);
      },
    };
    const logger = createTestLogger();
    const cluster = createCluster({
      ...{ nodes: directory, openRelay: async () => hub.connect(row.boot), clock: systemClock, logger, ...relay },
    });
    const feed = createCallFeed({ onPublished: cluster.publish });
    const local = fakeLocal(row, feed);
    const phones = { nodeOf: async () => browserAt };
    const dialer = createClusterDialer({
      ...{ local: partial<NodeDialer>(local), phones, cluster, nodes: directory, feed, sql: database.sql, logger },
    });
    const lose = (boot: string) => {
      peers = peers.filter((peer) => peer.boot !== boot);
      for (const listener of listeners) listener(peers);
    };
    return { index, boot: row.boot, row, local, dialer, feed, lose, close: cluster.close };
  });
  return { hub, nodes };
}

/** The dialer of one node; placing only stores the call. */
function fakeLocal(row: NodeRow, feed: CallFeed) {
  const nothing = async (): Promise<void> => {};
  const state = {
    refusal: null as TandemError | null,
    ...{ onPlace: nothing, onHangup: nothing, onControl: nothing, hangups: [] as object[] },
  };
  const placed: PlaceCallRequest[] = [];
  return Object.assign(state, {
    placed,
    report: () => row,
    watch: feed.watch,
    async place(request: PlaceCallRequest) {
      if (state.refusal) throw state.refusal;
      await state.onPlace();
      placed.push(request);
      const { call } = await liveCall({ ownerBoot: row.boot });
      return { placed: true, replayed: false, call: presentCall(call) };
    },
    async control(target: { callId: string }) {
      await state.onControl();
      return presentCall((await getCallById(database.sql, target.callId))!);
    },
    async hangup(target: { callId: string }) {
      state.hangups.push(target);
      await state.onHangup();
      return presentCall((await getCallById(database.sql, target.callId))!);
    },
  });
}

const placedOn = (nodes: { local: FakeLocal }[]) => nodes.map(({ local }) => local.placed.length);

async function caller() {
  const { workspaceId } = await seedCaller(database.sql);
  return { request: (given: Partial<PlaceCallRequest> = {}) => ({ ...PLACEMENT, workspaceId, ...given }) };
}

async function liveCall({ ownerBoot }: { ownerBoot: string }) {
  const seeded = await seedCaller(database.sql);
  const call = await seeded.admit({ ownerNode: 'node-of-the-call', ownerBoot });
  await moveTo(database.sql, call, 'bridged', { at: call.createdAt });
  return { call, target: { workspaceId: call.workspaceId, callId: call.callId } };
}
