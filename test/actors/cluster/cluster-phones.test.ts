import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PhoneNotice } from '../../../actors/phones/phone-desk.ts';
import { eventually } from '../../eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { moveTo, seedCaller } from '../seeds.ts';
import { AGENT, connect, dial, HOLDER, openPhoneNodes } from './phone-nodes.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function openNodes() {
  const { hub, nodes } = openPhoneNodes(2, database.sql);
  return { hub, here: nodes[0]!, there: nodes[1]! };
}

describe('phone whose socket reached another node', () => {
  it("rings, answers and hangs up, with its audio on the call's node", async () => {
    const { here, there } = openNodes();
    const { token } = await here.phones.mint(HOLDER);
    const { phone, types } = await connect(there, token);
    expect(phone.holder).toEqual(HOLDER);
    const { events } = dial(here);
    await eventually(() => expect(types()).toEqual(['welcome', 'incoming']));
    expect(await phone.request({ type: 'answer', callId: 'call_1' })).toHaveProperty('router_rtp_capabilities');
    expect([here.webRtc.opened.length, there.webRtc.opened.length]).toEqual([1, 0]);
    here.webRtc.opened[0]!.browser.connect();
    await eventually(() => expect(types()).toContain('answered'));
    await phone.request({ type: 'dtmf', callId: 'call_1', digit: '5', durationMs: 100 });
    await phone.request({ type: 'hangup', callId: 'call_1' });
    await eventually(() => expect(types()).toEqual(['welcome', 'incoming', 'answered', 'ended']));
    expect(events.map(({ type }) => type)).toEqual(['leg.ringing', 'leg.answered', 'leg.pressed', 'leg.ended']);
  });

  it('connects once per token', async () => {
    const { here, there } = openNodes();
    const { token } = await here.phones.mint(HOLDER);
    await connect(there, token);
    expect((await connect(there, token)).phone).toBeNull();
    expect((await connect(here, token)).phone).toBeNull();
  });

  it('receives the error of a failed request', async () => {
    const { here, there } = openNodes();
    const { phone } = await connect(there, (await here.phones.mint(HOLDER)).token);
    const request = phone.request({ type: 'hangup', callId: 'call_9' });
    await expect(request).rejects.toMatchObject({ code: 'CALL_NOT_LIVE' });
    await expect(phone.request({ type: 'decline', callId: 'call_9' })).rejects.toMatchObject({ code: 'CALL_NOT_LIVE' });
  });

  it('resumes over either node after losing its socket, and keeps its call', async () => {
    const { here, there } = openNodes();
    const first = await connect(there, (await here.phones.mint(HOLDER)).token);
    dial(here);
    await eventually(() => expect(first.types()).toContain('incoming'));
    const resumeToken = (notices: PhoneNotice[]) =>
      notices.findLast((notice) => notice.type === 'welcome')?.resume_token ?? '';
    first.phone.detach();
    const second = await connect(here, resumeToken(first.notices), 'resume');
    expect(second.notices).toMatchObject([{ type: 'welcome', call: { call_id: 'call_1', state: 'ringing' } }]);
    const third = await connect(there, resumeToken(second.notices), 'resume');
    await eventually(() => expect(third.notices).toMatchObject([{ type: 'welcome', call: { call_id: 'call_1' } }]));
    expect(second.closed).toEqual([4001]);
  });

  it('replaces its earlier socket on the other node', async () => {
    const { here, there } = openNodes();
    const first = await connect(there, (await here.phones.mint(HOLDER)).token);
    await eventually(() => expect(first.notices).toHaveLength(1));
    await connect(here, (first.notices[0] as { resume_token: string }).resume_token, 'resume');
    await eventually(() => expect(first.closed).toEqual([4001]));
  });

  it('closes with 1012 when its node is lost', async () => {
    const { here, there } = openNodes();
    const { closed } = await connect(there, (await here.phones.mint(HOLDER)).token);
    there.lose();
    expect(closed).toEqual([1012]);
  });

  it('can resume for ten seconds when the node of its socket is lost', async () => {
    const { here, there } = openNodes();
    await connect(there, (await here.phones.mint(HOLDER)).token);
    const { events } = dial(here);
    await eventually(() => expect(events.map(({ type }) => type)).toEqual(['leg.ringing']));
    here.lose();
    expect(here.local.reaches(AGENT)).toBe(true);
    here.clock.advance(10_000);
    expect(here.local.reaches(AGENT)).toBe(false);
  });

  it('ends once its node learns that its socket is gone', async () => {
    const { hub, here, there } = openNodes();
    const { phone, types } = await connect(there, (await here.phones.mint(HOLDER)).token);
    await eventually(() => expect(types()).toEqual(['welcome']));
    // By its response, the notice has been acknowledged.
    await expect(phone.request({ type: 'hangup', callId: 'call_9' })).rejects.toThrow();
    hub.disconnect(here.boot);
    phone.detach();
    await nextTurn();
    hub.reconnect(here.boot);
    const { events } = dial(here);
    await eventually(() => expect(events.map(({ type }) => type)).toEqual(['leg.ringing']));
    await eventually(() => {
      here.clock.advance(10_000);
      expect(events.map(({ type }) => type)).toEqual(['leg.ringing', 'leg.refused']);
    });
    expect(here.local.reaches(AGENT)).toBe(false);
  });

  it('ends when its node learns late that its socket is closed', async () => {
    const { hub, here, there } = openNodes();
    const { phone } = await connect(there, (await here.phones.mint(HOLDER)).token);
    hub.disconnect(here.boot);
    phone.leave();
    await nextTurn();
    hub.reconnect(here.boot);
    expect(here.local.reaches(AGENT)).toBe(true);
    there.renew();
    await eventually(() => expect(here.local.reaches(AGENT)).toBe(false));
  });

  it('reconnects after a notice that did not reach its socket', async () => {
    const { hub, here, there } = openNodes();
    const { types, closed } = await connect(there, (await here.phones.mint(HOLDER)).token);
    await eventually(() => expect(types()).toEqual(['welcome']));
    hub.disconnect(there.boot);
    const { events } = dial(here);
    await eventually(() => expect(events.map(({ type }) => type)).toEqual(['leg.ringing']));
    await nextTurn();
    hub.reconnect(there.boot);
    here.renew();
    await eventually(() => expect(closed).toEqual([1012]));
  });

  it('cannot connect while the node of its token is silent', async () => {
    const { hub, here, there } = openNodes();
    const { token } = await here.phones.mint(HOLDER);
    hub.disconnect(here.boot);
    await expect(connect(there, token)).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
  });
});

describe('phone token in a cluster', () => {
  it('comes from the node that runs its call', async () => {
    const { here, there } = openNodes();
    const seeded = await seedCaller(database.sql);
    const call = await seeded.admit({ ownerNode: 'node-of-the-call', ownerBoot: there.boot });
    await moveTo(database.sql, call, 'bridged', { at: call.createdAt });
    const { token, expiresAt } = await here.phones.mint({ ...HOLDER, callId: call.callId });
    expect(token).toContain(there.boot);
    expect(expiresAt).toBeInstanceOf(Date);
    const { types } = await connect(here, token);
    dial(there, call.callId);
    await eventually(() => expect(types()).toEqual(['welcome', 'incoming']));
  });

  it('connects nothing when its node is lost or unknown', async () => {
    const { here, there } = openNodes();
    const { token } = await here.phones.mint(HOLDER);
    there.lose();
    expect((await connect(there, token)).phone).toBeNull();
    expect((await connect(there, 'pt_nonsense')).phone).toBeNull();
    expect((await connect(there, '')).phone).toBeNull();
  });
});

describe('nodeOf', () => {
  it('returns the other node if only that one has a phone or token of the user', async () => {
    const { here, there } = openNodes();
    expect(await here.phones.nodeOf(AGENT)).toBeNull();
    const { token } = await there.phones.mint(HOLDER);
    expect(await here.phones.nodeOf(AGENT)).toBe(there.boot);
    expect(await there.phones.nodeOf(AGENT)).toBeNull();
    await connect(here, token);
    expect(await here.phones.nodeOf(AGENT)).toBe(there.boot);
    expect(await here.phones.nodeOf({ ...AGENT, userId: 8 })).toBeNull();
    await here.phones.mint(HOLDER);
    expect(await here.phones.nodeOf(AGENT)).toBeNull();
  });
});
