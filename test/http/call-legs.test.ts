import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import type { CallLeg } from '../../machines/events.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { FakeDialer, legOf } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let admin: Member;
let writer: Member;
let reader: Member;
let stranger: Member;
let callId: string;
let call: string;
const dialer = new FakeDialer();
const PARTY = 'leg_00000000-0000-4000-8000-000000000001';
const SUPERVISOR = 'leg_00000000-0000-4000-8000-000000000002';
const GONE = 'leg_00000000-0000-4000-8000-000000000003';
const ENDPOINT = { type: 'phone', number: '98123 45678' };
const DIALED = { type: 'phone', number: '+919812345678' } as const;

beforeAll(async () => {
  fixture = await createHttpFixture({ dialer });
  const { workspace } = await seedWorkspace(fixture.sql);
  admin = await fixture.addMemberWith('admin', workspace.id);
  writer = await fixture.addMemberWith('developer', workspace.id);
  reader = await fixture.addMemberWith('viewer', workspace.id);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  ({ callId } = await seedCall(fixture, { by: writer }));
  await initiate(fixture, callId);
  call = `/dialer/click2call/${callId}`;
  const leg = { number: '+919812345678', mode: null, muted: false, joinedAt: null, leftAt: null, hangupCause: null };
  const legs = [
    { ...leg, legId: PARTY, role: 'party', state: 'answered' },
    { ...leg, legId: SUPERVISOR, role: 'supervisor', mode: 'listen', state: 'answered' },
    { ...leg, legId: GONE, role: 'party', state: 'ended' },
  ] satisfies CallLeg[];
  await fixture.sql`update calls set legs = ${fixture.sql.json(legs)} where call_id = ${callId}`;
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  dialer.controlled.length = 0;
  dialer.added.length = 0;
  dialer.onControl = () => undefined;
  dialer.onAddLeg = () => undefined;
});

const ask = (method: string, path: string, as: Member, body?: unknown) =>
  fixture.call(method as 'POST', `${call}/${path}`, { as, body });
const audited = async () =>
  (await fixture.sql`select details from audit_log where action = 'call.supervised'`).map(({ details }) => details);

describe('further parties of a call', () => {
  it('adds a party for a writer, with its number in E.164', async () => {
    const { status, body } = await ask('POST', 'legs', writer, { endpoint: ENDPOINT });
    expect({ status, leg: body.data.leg }).toMatchObject({ status: 202, leg: { role: 'party', state: 'dialing' } });
    expect(dialer.added).toEqual([{ role: 'party', mode: null, endpoint: DIALED }]);
  });

  it('adds no party for readers or other workspaces', async () => {
    expect((await ask('POST', 'legs', reader, { endpoint: ENDPOINT })).status).toBe(403);
    expect((await ask('POST', 'legs', stranger, { endpoint: ENDPOINT })).body.code).toBe('CALL_NOT_FOUND');
    expect(dialer.added).toEqual([]);
  });

  for (const body of [
    undefined,
    {},
    { endpoint: null },
    { endpoint: { type: 'phone' } },
    { endpoint: { type: 'phone', number: '+15551234567' } },
    { endpoint: { type: 'phone', number: '98123\u0000' } },
    { endpoint: { type: 'fax', number: '9812345678' } },
    { endpoint: ENDPOINT, role: 'supervisor' },
    { endpoint: ENDPOINT, more: 1 },
  ]) {
    it(`rejects a party with ${JSON.stringify(body)}`, async () => {
      const { status, body: answer } = await ask('POST', 'legs', writer, body);
      expect({ status, code: answer.code }).toEqual({ status: 400, code: 'VALIDATION_FAILED' });
      expect(dialer.added).toEqual([]);
    });
  }

  it('removes a party for a writer, but not a supervisor, an ended leg or the customer', async () => {
    expect((await ask('DELETE', `legs/${PARTY}`, writer)).status).toBe(200);
    expect(dialer.controlled).toEqual([{ type: 'leg.drop', leg: PARTY }]);
    for (const leg of [SUPERVISOR, GONE, 'customer', 'leg_x']) {
      expect((await ask('DELETE', `legs/${leg}`, writer)).body.code).toBe('LEG_NOT_FOUND');
    }
    expect(dialer.controlled).toHaveLength(1);
  });

  it('controls a party by its leg_id', async () => {
    expect((await ask('POST', 'mute', writer, { leg: PARTY })).status).toBe(200);
    expect(dialer.controlled).toEqual([{ type: 'mute', leg: PARTY }]);
  });

  it('forwards the error code when the call refuses a party', async () => {
    dialer.onAddLeg = () => {
      throw new TandemError('TOO_MANY_LEGS', 'The call has 8 further legs.');
    };
    expect(await ask('POST', 'legs', writer, { endpoint: ENDPOINT })).toMatchObject({
      status: 409,
      body: { code: 'TOO_MANY_LEGS' },
    });
  });
});

describe('supervision of a call', () => {
  it('starts, changes and ends for admins, and writes each change to the audit log', async () => {
    const begun = await ask('POST', 'supervise', admin, { mode: 'listen', endpoint: ENDPOINT });
    expect(begun).toMatchObject({ status: 201, body: { data: { supervision: { mode: 'listen', state: 'dialing' } } } });
    expect(dialer.added).toEqual([{ role: 'supervisor', mode: 'listen', endpoint: DIALED }]);
    dialer.legs = [{ ...legOf({ role: 'supervisor', mode: 'barge', endpoint: DIALED }), leg_id: SUPERVISOR }];
    const changed = await ask('PATCH', `supervise/${SUPERVISOR}`, admin, { mode: 'barge' });
    expect(changed).toMatchObject({ status: 200, body: { data: { supervision: { id: SUPERVISOR, mode: 'barge' } } } });
    expect((await ask('DELETE', `supervise/${SUPERVISOR}`, admin)).status).toBe(200);
    expect(dialer.controlled).toEqual([
      { type: 'supervise', leg: SUPERVISOR, mode: 'barge' },
      { type: 'leg.drop', leg: SUPERVISOR },
    ]);
    expect(await audited()).toEqual([
      { mode: 'listen', number: '+919812345678' },
      { mode: 'barge', supervision_id: SUPERVISOR },
      { supervision_id: SUPERVISOR, ended: true },
    ]);
  });

  it('refuses writers and other workspaces', async () => {
    expect((await ask('POST', 'supervise', writer, { mode: 'listen', endpoint: ENDPOINT })).status).toBe(403);
    expect((await ask('PATCH', `supervise/${SUPERVISOR}`, writer, { mode: 'barge' })).status).toBe(403);
    expect((await ask('DELETE', `supervise/${SUPERVISOR}`, writer)).status).toBe(403);
    expect((await ask('DELETE', `supervise/${SUPERVISOR}`, stranger)).body.code).toBe('CALL_NOT_FOUND');
    for (const path of ['hold', 'mute']) {
      expect((await ask('POST', path, writer, { leg: SUPERVISOR })).body.code).toBe('FORBIDDEN');
    }
    expect([dialer.added, dialer.controlled]).toEqual([[], []]);
  });

  it("answers 404 for a party's leg, and rejects an unknown or missing mode", async () => {
    expect((await ask('PATCH', `supervise/${PARTY}`, admin, { mode: 'barge' })).body.code).toBe('LEG_NOT_FOUND');
    expect((await ask('PATCH', `supervise/${SUPERVISOR}`, admin, { mode: 'shout' })).status).toBe(400);
    expect((await ask('POST', 'supervise', admin, { endpoint: ENDPOINT })).status).toBe(400);
  });
});

describe('a call whose agent was transferred', () => {
  const SUCCESSOR = 'leg_00000000-0000-4000-8000-000000000004';

  it('takes the role of the agent as the name of its successor', async () => {
    const transferred = await seedCall(fixture, { by: writer });
    const leg = { number: null, mode: null, muted: false, joinedAt: null, leftAt: null, hangupCause: null };
    const legs = [
      { ...leg, legId: 'agent', role: 'agent', state: 'ended' },
      { ...leg, legId: 'customer', role: 'customer', state: 'answered' },
      { ...leg, legId: SUCCESSOR, role: 'agent', state: 'answered' },
      { ...leg, legId: PARTY, role: 'party', state: 'answered' },
    ] satisfies CallLeg[];
    await fixture.sql`update calls set legs = ${fixture.sql.json(legs)} where call_id = ${transferred.callId}`;
    const post = (path: string, body: unknown) =>
      fixture.call('POST', `/dialer/click2call/${transferred.callId}/${path}`, { as: writer, body });
    for (const named of ['agent', 'customer', PARTY]) await post('mute', { leg: named });
    await post('transfer', { endpoint: ENDPOINT });
    expect(dialer.controlled.map((control) => 'leg' in control && control.leg)).toEqual([SUCCESSOR, 'customer', PARTY]);
    expect(dialer.added).toMatchObject([{ transfer: { leg: SUCCESSOR, mode: 'blind' } }]);
  });
});

describe('transfer of a call', () => {
  it('starts for a writer, by default blind and from the agent', async () => {
    const { status, body } = await ask('POST', 'transfer', writer, { endpoint: ENDPOINT });
    expect({ status, leg: body.data.leg }).toMatchObject({ status: 202, leg: { role: 'party', state: 'dialing' } });
    await ask('POST', 'transfer', writer, { endpoint: ENDPOINT, leg: PARTY, mode: 'attended' });
    const added = { role: 'party', mode: null, endpoint: DIALED };
    expect(dialer.added).toEqual([
      { ...added, transfer: { leg: 'agent', mode: 'blind' } },
      { ...added, transfer: { leg: PARTY, mode: 'attended' } },
    ]);
    for (const as of [reader, stranger]) {
      expect([403, 404]).toContain((await ask('POST', 'transfer', as, { endpoint: ENDPOINT })).status);
    }
  });

  it.each([
    [{}],
    [{ endpoint: { type: 'phone', number: '12' } }],
    [{ to: { type: 'phone', number: '12' } }],
    [{ endpoint: ENDPOINT, to: ENDPOINT }],
    [{ endpoint: ENDPOINT, mode: 'warm' }],
    [{ endpoint: ENDPOINT, leg: 7 }],
    [{ endpoint: ENDPOINT, legs: 'agent' }],
  ])('rejects %j and dials nothing', async (body) => {
    const { status } = await ask('POST', 'transfer', writer, body);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(dialer.added).toEqual([]);
  });

  it('rejects an unknown leg', async () => {
    const { body } = await ask('POST', 'transfer', writer, { endpoint: ENDPOINT, leg: 'boss' });
    expect(body.code).toBe('LEG_NOT_FOUND');
  });

  it('takes the target as `to`, too, and names the transfer', async () => {
    const { status, body } = await ask('POST', 'transfer', writer, { to: ENDPOINT, leg: 'customer', mode: 'attended' });
    expect(status).toBe(202);
    expect(body.data.transfer).toEqual({ id: body.data.leg.leg_id, state: 'consulting' });
    expect(dialer.added).toMatchObject([{ endpoint: DIALED, transfer: { leg: 'customer', mode: 'attended' } }]);
  });

  it.each([
    ['complete', 'completed'],
    ['cancel', 'cancelled'],
  ] as const)('can be named to %s it', async (action, state) => {
    const { status, body } = await ask('POST', `transfer/${PARTY}/${action}`, writer);
    expect({ status, transfer: body.data.transfer }).toEqual({ status: 200, transfer: { id: PARTY, state } });
    expect(body.data.call).toHaveProperty('call_id');
    expect(dialer.controlled).toEqual([{ type: `transfer.${action}`, target: PARTY }]);
    expect((await ask('POST', `transfer/${PARTY}/${action}`, reader)).status).toBe(403);
  });

  it('completes and cancels for writers only', async () => {
    expect((await ask('POST', 'transfer/complete', writer)).status).toBe(200);
    expect((await ask('DELETE', 'transfer', writer)).status).toBe(200);
    expect(dialer.controlled).toEqual([{ type: 'transfer.complete' }, { type: 'transfer.cancel' }]);
    expect((await ask('DELETE', 'transfer', reader)).status).toBe(403);
  });
});
