import { beforeEach, describe, expect, it } from 'vitest';
import { createPhoneDesk } from '../../../actors/phones/phone-desk.actor.ts';
import type { ConnectedPhone, PhoneHolder, PhoneNotice } from '../../../actors/phones/phone-desk.ts';
import type { LegEvent } from '../../../machines/events.ts';
import { createTestClock, createTestLogger } from '../fakes.ts';
import { FakeWebRtc } from './fake-webrtc.ts';

const HOLDER: PhoneHolder = {
  workspaceId: 'workspace-1',
  userId: 7,
  purpose: 'agent',
  callId: null,
  credentials: null,
};

let clock: ReturnType<typeof createTestClock>;
let webRtc: FakeWebRtc;
let desk: ReturnType<typeof createPhoneDesk>;
beforeEach(() => {
  clock = createTestClock();
  webRtc = new FakeWebRtc();
  desk = createPhoneDesk({ boot: 'boot-1', webRtc, clock, logger: createTestLogger() });
});

function connect(holder: Partial<PhoneHolder> = {}) {
  const notices: PhoneNotice[] = [];
  const closed: number[] = [];
  const outlet = {
    send: (notice: PhoneNotice) => void notices.push(notice),
    close: (code: number) => void closed.push(code),
  };
  const phone = desk.connect(desk.mint({ ...HOLDER, ...holder }).token, outlet) as ConnectedPhone;
  const types = () => notices.map(({ type }) => type);
  const resumeToken = () => notices.findLast((notice) => notice.type === 'welcome')?.resume_token ?? '';
  return { phone, notices, types, closed, outlet, resumeToken };
}

/** Dials a leg, and resolves when the desk has looked for phones. */
async function dial({ callId = 'call_1', purpose = 'agent' as 'agent' | 'supervise' } = {}) {
  const events: LegEvent[] = [];
  const abort = new AbortController();
  const call = {
    call_id: callId,
    reference_id: 'order-1',
    leg_id: 'agent',
    role: 'agent',
    customer_number: '+91',
  } as const;
  const leg = desk.dial({
    ...{ workspaceId: HOLDER.workspaceId, userId: HOLDER.userId, purpose, call },
    localMedia: { host: '127.0.0.1', rtpPort: 20_000 },
    signal: abort.signal,
    onEvent: (event) => void events.push(event),
  });
  await new Promise((resolve) => setImmediate(resolve));
  return { leg, events, abort, callId };
}

async function talk() {
  const agent = connect();
  const dialed = await dial();
  await agent.phone.request({ type: 'answer', callId: dialed.callId });
  webRtc.opened[0]!.browser.connect();
  await new Promise((resolve) => setImmediate(resolve));
  return { ...agent, ...dialed };
}

describe('leg to a browser', () => {
  it('fails with NO_USER_RESPONSE without a connected phone of the user', async () => {
    connect({ userId: 8 });
    connect({ workspaceId: 'workspace-2' });
    connect({ purpose: 'supervise' });
    connect({ callId: 'call_2' });
    const { events } = await dial();
    expect(events).toMatchObject([{ type: 'leg.refused', sipStatus: 480, hangupCause: 'NO_USER_RESPONSE' }]);
    expect(desk.dump()).toMatchObject({ legs: 0 });
  });

  it('waits for the phone of an unused token until the token expires', async () => {
    const { token } = desk.mint(HOLDER);
    const { events } = await dial();
    expect(events).toEqual([]);
    clock.advance(60_000);
    expect(events).toMatchObject([{ type: 'leg.refused', hangupCause: 'NO_USER_RESPONSE' }]);
    expect(desk.connect(token, connect().outlet)).toBeNull();
  });

  it('rings a phone that connects meanwhile', async () => {
    desk.mint(HOLDER);
    const { events } = await dial();
    expect(connect().types()).toEqual(['welcome', 'incoming']);
    expect(events).toMatchObject([{ type: 'leg.ringing', sipStatus: 180 }]);
  });

  it('rings every phone of the user, and connects the first one that answers once its audio flows', async () => {
    const [first, second] = [connect(), connect()];
    const { events, callId } = await dial();
    expect([first.types(), second.types()]).toEqual([
      ['welcome', 'incoming'],
      ['welcome', 'incoming'],
    ]);
    expect(await second.phone.request({ type: 'answer', callId })).toHaveProperty('router_rtp_capabilities');
    expect(first.notices.at(-1)).toEqual({ type: 'ended', call_id: callId, hangup_cause: 'ANSWERED_ELSEWHERE' });
    await expect(first.phone.request({ type: 'answer', callId })).rejects.toMatchObject({ code: 'CALL_NOT_LIVE' });
    expect(events.map(({ type }) => type)).toEqual(['leg.ringing']);
    webRtc.opened[0]!.browser.connect();
    await new Promise((resolve) => setImmediate(resolve));
    expect(events.map(({ type }) => type)).toEqual(['leg.ringing', 'leg.answered']);
    expect(second.types().at(-1)).toBe('answered');
  });

  it('fails with CALL_REJECTED when declined, and with USER_BUSY during another call', async () => {
    const { phone, events: first } = await talk();
    const { events: second } = await dial({ callId: 'call_2' });
    expect(second).toMatchObject([{ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY' }]);
    await phone.request({ type: 'hangup', callId: 'call_1' });
    expect(first.at(-1)).toEqual({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    const { events: third } = await dial({ callId: 'call_3' });
    await phone.request({ type: 'decline', callId: 'call_3' });
    expect(third.at(-1)).toMatchObject({ type: 'leg.refused', sipStatus: 603, hangupCause: 'CALL_REJECTED' });
  });

  it('can be cancelled while ringing, and hung up after the answer', async () => {
    const agent = connect();
    const ringing = await dial();
    ringing.leg.hangup('NO_ANSWER');
    expect(ringing.events.at(-1)).toMatchObject({ type: 'leg.refused', sipStatus: 487 });
    expect(agent.notices.at(-1)).toMatchObject({ type: 'ended', hangup_cause: 'NO_ANSWER' });
    agent.phone.leave();
    const { leg, events } = await talk();
    leg.hangup('NORMAL_CLEARING');
    leg.hangup('NORMAL_CLEARING');
    expect(events.at(-1)).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' });
    expect(events).toHaveLength(3);
    expect(webRtc.opened[0]!.options.signal.aborted).toBe(true);
  });

  it('reports keys, and signals holds to the page', async () => {
    const { phone, leg, events, types, callId } = await talk();
    await phone.request({ type: 'dtmf', callId, digit: '5', durationMs: 100 });
    expect(events.at(-1)).toEqual({ type: 'leg.pressed', digit: '5', durationMs: 100 });
    leg.hold(true);
    leg.hold(false);
    expect(types().slice(-2)).toEqual(['held', 'resumed']);
  });

  it('survives a lost socket for ten seconds', async () => {
    const { phone, events, callId, resumeToken, outlet, notices } = await talk();
    const token = resumeToken();
    phone.detach();
    clock.advance(9_999);
    const resumed = desk.resume(token, outlet);
    clock.advance(60_000);
    expect(notices.at(-1)).toMatchObject({ type: 'welcome', call: { call_id: callId, state: 'answered' } });
    expect(events.at(-1)?.type).toBe('leg.answered');
    expect(desk.resume(token, outlet)).toBeNull();
    await resumed!.request({ type: 'hangup', callId });
    expect(events.at(-1)?.type).toBe('leg.ended');
  });

  it('can be answered again after a page reload, in the same media session', async () => {
    const { phone, events, callId, resumeToken, outlet } = await talk();
    const token = resumeToken();
    phone.detach();
    const resumed = desk.resume(token, outlet)!;
    expect(await resumed.request({ type: 'answer', callId })).toMatchObject({ router_rtp_capabilities: {} });
    expect(webRtc.opened).toHaveLength(1);
    expect(events.map(({ type }) => type)).toEqual(['leg.ringing', 'leg.answered']);
    await resumed.request({ type: 'hangup', callId });
    await expect(resumed.request({ type: 'answer', callId })).rejects.toMatchObject({ code: 'CALL_NOT_LIVE' });
  });

  it('ends when the phone stays disconnected', async () => {
    const { phone, events, resumeToken, outlet } = await talk();
    phone.detach();
    clock.advance(10_000);
    expect(events.at(-1)).toEqual({ type: 'leg.ended', by: 'peer', hangupCause: 'NETWORK_OUT_OF_ORDER' });
    expect(desk.resume(resumeToken(), outlet)).toBeNull();
  });

  it('fails with the worker, and ends silently with its call', async () => {
    const first = await talk();
    webRtc.opened[0]!.options.onLost('the worker died');
    expect(first.events.at(-1)).toMatchObject({ type: 'leg.lost' });
    const { abort, events } = await dial({ callId: 'call_2' });
    abort.abort();
    expect(events.map(({ type }) => type)).toEqual(['leg.ringing']);
    expect(first.types().at(-1)).toBe('ended');
  });
});

describe('token of a phone', () => {
  it('connects one phone', () => {
    const { token, expiresAt } = desk.mint(HOLDER);
    expect(expiresAt.getTime() - clock.now()).toBe(60_000);
    const { outlet } = connect();
    expect(desk.connect(token, outlet)).not.toBeNull();
    expect(desk.connect(token, outlet)).toBeNull();
    expect(desk.connect('pt_guessed', outlet)).toBeNull();
    expect(desk.resume('', outlet)).toBeNull();
  });

  it('cannot be created without WebRTC', () => {
    webRtc.unavailable = 'no worker';
    expect(() => desk.mint(HOLDER)).toThrow(expect.objectContaining({ code: 'WEBRTC_NOT_AVAILABLE' }));
  });

  it('connects at most ten phones of a user', () => {
    for (let i = 0; i < 10; i++) connect();
    expect(() => connect()).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
    connect({ userId: 8 });
  });
});
