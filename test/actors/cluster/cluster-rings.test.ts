import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PhoneNotice } from '../../../actors/phones/phone-desk.ts';
import { eventually } from '../../eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { connect, dial, HOLDER, openPhoneNodes, type PhoneNode } from './phone-nodes.ts';

let database: TestDatabase;
let here: PhoneNode;
let there: PhoneNode;
let third: PhoneNode;
let hub: ReturnType<typeof openPhoneNodes>['hub'];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => {
  const opened = openPhoneNodes(3, database.sql);
  hub = opened.hub;
  [here, there, third] = opened.nodes as [PhoneNode, PhoneNode, PhoneNode];
});

async function phoneOn(node: PhoneNode) {
  const { token } = await node.phones.mint(HOLDER);
  return await connect(node, token);
}

type TestPhone = Awaited<ReturnType<typeof phoneOn>>;

const answer = ({ phone }: TestPhone, callId = 'call_1') => phone.request({ type: 'answer', callId });

/** A call of `here` with a phone of `there`. */
async function talk() {
  const agent = await phoneOn(there);
  const dialed = dial(here);
  await eventually(() => expect(agent.types()).toEqual(['welcome', 'incoming']));
  await answer(agent);
  here.webRtc.opened[0]!.browser.connect();
  await eventually(() => expect(agent.types().at(-1)).toBe('answered'));
  await eventually(() => expect(dialed.types()).toEqual(['leg.ringing', 'leg.answered']));
  return { agent, ...dialed };
}

const isMediaClosed = () => here.webRtc.opened[0]!.options.signal.aborted;
const legsOf = (node: PhoneNode) => (node.local.dump() as { legs: number }).legs;

describe('call for a user with phones on several nodes', () => {
  it('rings them all, and connects the first that answers, with the media on the node of the call', async () => {
    const phones = [await phoneOn(here), await phoneOn(there), await phoneOn(third)];
    const [own, first, other] = phones as [TestPhone, TestPhone, TestPhone];
    const { events, types } = dial(here);
    for (const each of phones) await eventually(() => expect(each.types()).toEqual(['welcome', 'incoming']));
    expect(events).toEqual([{ type: 'leg.ringing', sipStatus: 180, earlyMedia: null }]);
    expect(await answer(first)).toEqual({ router_rtp_capabilities: { codecs: [], headerExtensions: [] } });
    for (const each of [own, other]) {
      const ended = { type: 'ended', call_id: 'call_1', hangup_cause: 'ANSWERED_ELSEWHERE' };
      await eventually(() => expect(each.notices.at(-1)).toEqual(ended));
      await expect(answer(each)).rejects.toMatchObject({ code: 'CALL_NOT_LIVE' });
    }
    expect([here, there, third].map(({ webRtc }) => webRtc.opened.length)).toEqual([1, 0, 0]);
    expect(here.webRtc.opened[0]!.options.local).toEqual({ host: '127.0.0.1', rtpPort: 20_000 });
    here.webRtc.opened[0]!.browser.connect();
    await eventually(() => expect(types()).toEqual(['leg.ringing', 'leg.answered']));
    expect(first.types().at(-1)).toBe('answered');
    expect([legsOf(here), legsOf(third)]).toEqual([0, 0]);
  });

  it('stops ringing on the other nodes when a phone of its own node answers', async () => {
    const [own, other] = [await phoneOn(here), await phoneOn(there)];
    dial(here);
    await eventually(() => expect(other.types()).toContain('incoming'));
    await answer(own);
    await eventually(() => expect(other.notices.at(-1)).toMatchObject({ hangup_cause: 'ANSWERED_ELSEWHERE' }));
    expect(legsOf(there)).toBe(0);
  });

  it('stops ringing as answered elsewhere although the other node reports the ringing only then', async () => {
    const own = await phoneOn(here);
    const { token } = await there.phones.mint(HOLDER);
    const notices: PhoneNotice[] = [];
    let thaw = () => {};
    await there.phones.connect(token, {
      send(notice) {
        notices.push(notice);
        if (notice.type !== 'incoming') return;
        // The command that ends the ringing waits for the answer to the ring.
        thaw = hub.freeze(here.boot, 'answers');
        void answer(own);
      },
      close() {},
    });
    dial(here);
    await eventually(() => expect(notices.at(-1)).toMatchObject({ type: 'ended' }));
    expect(notices.at(-1)).toMatchObject({ hangup_cause: 'ANSWERED_ELSEWHERE' });
    thaw();
  });

  it('goes to one phone if several answer at the same time', async () => {
    const phones = [await phoneOn(here), await phoneOn(there), await phoneOn(third)];
    dial(here);
    for (const each of phones) await eventually(() => expect(each.types()).toContain('incoming'));
    const answers = await Promise.allSettled(phones.reverse().map((each) => answer(each)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(here.webRtc.opened).toHaveLength(1);
  });

  it('carries out requests about media on the node of the call, and reports their errors', async () => {
    const { agent } = await talk();
    const request = { type: 'create_transport', callId: 'call_1', direction: 'send' } as const;
    await expect(agent.phone.request(request)).rejects.toMatchObject({
      ...{ code: 'VALIDATION_FAILED', message: 'create_transport failed: the transport does not exist.' },
    });
  });

  it('reports keys, signals holds, and ends when the phone hangs up', async () => {
    const { agent, leg, events } = await talk();
    leg.hold(true);
    leg.hold(false);
    await eventually(() => expect(agent.types().slice(-2)).toEqual(['held', 'resumed']));
    await agent.phone.request({ type: 'dtmf', callId: 'call_1', digit: '5', durationMs: 100 });
    await agent.phone.request({ type: 'hangup', callId: 'call_1' });
    await eventually(() =>
      expect(events.slice(-2)).toEqual([
        { type: 'leg.pressed', digit: '5', durationMs: 100 },
        { type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' },
      ]),
    );
    expect(isMediaClosed()).toBe(true);
    expect([legsOf(here), legsOf(there), legsOf(third)]).toEqual([0, 0, 0]);
  });

  it('can be hung up, which frees the phone for the next call', async () => {
    const { agent, leg, events } = await talk();
    leg.hangup('MAX_DURATION');
    leg.hangup('MAX_DURATION');
    expect(events.at(-1)).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'MAX_DURATION' });
    expect(events).toHaveLength(3);
    await eventually(() => expect(agent.notices.at(-1)).toMatchObject({ type: 'ended', hangup_cause: 'MAX_DURATION' }));
    dial(third, 'call_2');
    await eventually(() =>
      expect(agent.notices.at(-1)).toMatchObject({ type: 'incoming', call: { call_id: 'call_2' } }),
    );
  });

  it('can be cancelled while it rings', async () => {
    const agent = await phoneOn(there);
    const { leg, events } = dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    leg.hangup('NO_ANSWER');
    expect(events.at(-1)).toMatchObject({ type: 'leg.refused', sipStatus: 487, hangupCause: 'ORIGINATOR_CANCEL' });
    await eventually(() => expect(agent.notices.at(-1)).toMatchObject({ type: 'ended', hangup_cause: 'NO_ANSWER' }));
    expect(legsOf(there)).toBe(0);
  });

  it('ends on all phones when one declines', async () => {
    const [own, other] = [await phoneOn(here), await phoneOn(there)];
    const { events } = dial(here);
    await eventually(() => expect(other.types()).toContain('incoming'));
    await other.phone.request({ type: 'decline', callId: 'call_1' });
    await eventually(() => expect(events.at(-1)).toMatchObject({ type: 'leg.refused', hangupCause: 'CALL_REJECTED' }));
    expect(own.notices.at(-1)).toMatchObject({ type: 'ended', hangup_cause: 'CALL_REJECTED' });
  });

  it('ends silently when the call is abandoned', async () => {
    const { agent, abort, events } = await talk();
    abort.abort();
    await eventually(() => expect(agent.types().at(-1)).toBe('ended'));
    expect(events).toHaveLength(2);
    expect(isMediaClosed()).toBe(true);
  });

  it('fails with the media worker of its node', async () => {
    const { agent, events } = await talk();
    here.webRtc.opened[0]!.options.onLost('the worker died');
    expect(events.at(-1)).toEqual({ type: 'leg.lost', detail: 'the worker died' });
    await eventually(() => expect(agent.notices.at(-1)).toMatchObject({ hangup_cause: 'NETWORK_OUT_OF_ORDER' }));
  });

  it('fails if the media of the phone cannot be opened', async () => {
    const agent = await phoneOn(there);
    const { events } = dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    here.webRtc.unavailable = 'no worker';
    await expect(answer(agent)).rejects.toMatchObject({ code: 'WEBRTC_NOT_AVAILABLE', message: 'no worker' });
    await eventually(() => expect(events.at(-1)).toMatchObject({ type: 'leg.refused', sipStatus: 503 }));
    expect(agent.types().at(-1)).toBe('ended');
  });
});

describe('call for a user who cannot be reached at once', () => {
  it('fails with NO_USER_RESPONSE without a phone on any node', async () => {
    const { events } = dial(here);
    await eventually(() => expect(events).toMatchObject([{ type: 'leg.refused', hangupCause: 'NO_USER_RESPONSE' }]));
    await eventually(() => expect([legsOf(here), legsOf(there), legsOf(third)]).toEqual([0, 0, 0]));
  });

  it('fails with USER_BUSY while the only phone is in another call', async () => {
    await talk();
    const { events } = dial(third, 'call_2');
    await eventually(() =>
      expect(events).toMatchObject([{ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY' }]),
    );
  });

  it('waits for the phone of an unused token of another node', async () => {
    const { token } = await there.phones.mint(HOLDER);
    const { types } = dial(here);
    await eventually(() => expect(legsOf(there)).toBe(1));
    const agent = await connect(third, token);
    await eventually(() => expect(agent.types()).toEqual(['welcome', 'incoming']));
    await eventually(() => expect(types()).toEqual(['leg.ringing']));
  });

  it('rings a phone that connects to another node while others ring, which can outlast them', async () => {
    const first = await phoneOn(there);
    const { types } = dial(here);
    await eventually(() => expect(types()).toEqual(['leg.ringing']));
    const late = await phoneOn(third);
    await eventually(() => expect(late.types()).toEqual(['welcome', 'incoming']));
    first.phone.leave();
    await answer(late);
    here.webRtc.opened[0]!.browser.connect();
    await eventually(() => expect(types()).toEqual(['leg.ringing', 'leg.answered']));
  });

  it('fails once the last phone that rings has left', async () => {
    const [first, second] = [await phoneOn(there), await phoneOn(third)];
    const { events, types } = dial(here);
    await eventually(() => expect(second.types()).toContain('incoming'));
    await eventually(() => expect(first.types()).toContain('incoming'));
    first.phone.leave();
    await eventually(() => expect(here.local.reaches(HOLDER)).toBe(false));
    second.phone.leave();
    await eventually(() =>
      expect(events.at(-1)).toMatchObject({ type: 'leg.refused', hangupCause: 'NO_USER_RESPONSE' }),
    );
    expect(types()).toEqual(['leg.ringing', 'leg.refused']);
  });
});

describe('call with a phone of a node that drains', () => {
  it('goes on, and keeps the node until it ends', async () => {
    const { agent, leg } = await talk();
    const seen: string[] = [];
    const drained = there.phones.drain(60_000).then(() => seen.push('drained'));
    await agent.phone.request({ type: 'dtmf', callId: 'call_1', digit: '5', durationMs: 100 });
    seen.push('talked');
    leg.hangup('NORMAL_CLEARING');
    await drained;
    expect(seen).toEqual(['talked', 'drained']);
  });

  it('ends after the grace period', async () => {
    const { agent, types } = await talk();
    await there.phones.drain(0);
    expect(agent.notices.at(-1)).toMatchObject({ type: 'ended', hangup_cause: 'NETWORK_OUT_OF_ORDER' });
    await eventually(() => expect(types().at(-1)).toBe('leg.ended'));
  });

  it('keeps no node while it only rings', async () => {
    const agent = await phoneOn(there);
    dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    await there.phones.drain(60_000);
  });
});

describe('call with a phone of a node that fails', () => {
  it('rings although the node did not acknowledge at first', async () => {
    const agent = await phoneOn(there);
    hub.losesNextTo = there.boot;
    const { types } = dial(here);
    await eventually(() => expect(agent.types()).toEqual(['welcome', 'incoming']));
    await eventually(() => expect(types()).toEqual(['leg.ringing']));
  });

  it('goes on although a hold was not acknowledged at first', async () => {
    const { agent, leg, types } = await talk();
    hub.losesNextTo = there.boot;
    leg.hold(true);
    await eventually(() => expect(agent.types().at(-1)).toBe('held'));
    expect(types()).toEqual(['leg.ringing', 'leg.answered']);
  });

  it('rings elsewhere while one node is unreachable', async () => {
    hub.disconnect(third.boot);
    const agent = await phoneOn(there);
    const { types } = dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    await eventually(() => expect(types()).toEqual(['leg.ringing']));
  });

  it('fails with NO_USER_RESPONSE if the other nodes are unreachable', async () => {
    await phoneOn(there);
    hub.disconnect(third.boot);
    hub.disconnect(there.boot);
    const { events } = dial(here);
    await eventually(() => expect(events).toMatchObject([{ type: 'leg.refused', hangupCause: 'NO_USER_RESPONSE' }]));
  });

  it('ends when the node of the phone is lost', async () => {
    const { events } = await talk();
    here.lose();
    expect(events.at(-1)).toEqual({ type: 'leg.ended', by: 'peer', hangupCause: 'NETWORK_OUT_OF_ORDER' });
    expect(isMediaClosed()).toBe(true);
  });

  it('fails when the node of the phone is lost while it rings', async () => {
    await phoneOn(there);
    const { events, types } = dial(here);
    await eventually(() => expect(types()).toEqual(['leg.ringing']));
    here.lose();
    expect(events.at(-1)).toMatchObject({ type: 'leg.refused', hangupCause: 'NO_USER_RESPONSE' });
  });

  it('fails when the node of the phone is lost before its audio flows', async () => {
    const [agent, own] = [await phoneOn(there), await phoneOn(here)];
    const { events } = dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    await answer(agent);
    here.lose();
    expect(events.at(-1)).toMatchObject({ type: 'leg.refused', hangupCause: 'NO_USER_RESPONSE' });
    expect(own.notices.at(-1)).toMatchObject({ hangup_cause: 'ANSWERED_ELSEWHERE' });
    expect(isMediaClosed()).toBe(true);
  });

  it('ends on the phone when the node of the call is lost', async () => {
    const { agent } = await talk();
    there.lose();
    expect(agent.notices.at(-1)).toEqual({ type: 'ended', call_id: 'call_1', hangup_cause: 'NETWORK_OUT_OF_ORDER' });
    expect(legsOf(there)).toBe(0);
  });

  it('ends on the phone when only the node of the call takes the other one for lost', async () => {
    const { agent } = await talk();
    here.lose();
    await eventually(() => expect(agent.notices.at(-1)).toMatchObject({ hangup_cause: 'NETWORK_OUT_OF_ORDER' }));
    expect(legsOf(there)).toBe(0);
  });

  it('stops ringing when only the node of the call takes the other one for lost', async () => {
    const [agent, own] = [await phoneOn(there), await phoneOn(here)];
    dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    here.lose();
    await eventually(() => expect(agent.types().at(-1)).toBe('ended'));
    expect(own.types().at(-1)).toBe('incoming');
  });

  it('ends for the call when only the node of the phone takes the other one for lost', async () => {
    const { events } = await talk();
    there.lose();
    await eventually(() => expect(events.at(-1)).toMatchObject({ type: 'leg.ended', by: 'peer' }));
    expect(isMediaClosed()).toBe(true);
  });

  it('ends for the call once the nodes hear of each other again', async () => {
    const { agent, types } = await talk();
    hub.disconnect(here.boot);
    await agent.phone.request({ type: 'hangup', callId: 'call_1' });
    await eventually(() => expect(legsOf(there)).toBe(0));
    hub.reconnect(here.boot);
    await eventually(() => {
      there.renew();
      expect(types()).toEqual(['leg.ringing', 'leg.answered', 'leg.ended']);
    });
  });

  it('ends for the phone with the cause of the call once the nodes hear of each other again', async () => {
    const { agent, leg } = await talk();
    hub.disconnect(there.boot);
    leg.hangup('MAX_DURATION');
    await eventually(() => expect(here.logger.messages('warn')).toContain('phones on another node were lost'));
    hub.reconnect(there.boot);
    here.renew();
    await eventually(() => expect(agent.notices.at(-1)).toMatchObject({ type: 'ended', hangup_cause: 'MAX_DURATION' }));
  });

  it('stops ringing as answered elsewhere once the nodes hear of each other again', async () => {
    const [agent, own] = [await phoneOn(there), await phoneOn(here)];
    dial(here);
    await eventually(() => expect(agent.types()).toContain('incoming'));
    hub.disconnect(there.boot);
    await answer(own);
    await eventually(() => expect(here.logger.messages('warn')).toContain('phones on another node were lost'));
    hub.reconnect(there.boot);
    here.renew();
    await eventually(() => expect(agent.notices.at(-1)).toMatchObject({ hangup_cause: 'ANSWERED_ELSEWHERE' }));
  });
});
