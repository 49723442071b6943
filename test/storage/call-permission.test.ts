import { expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { chargePlayback } from '../../storage/queries/call-playbacks.ts';
import { type CallingRules, NO_CALLING_LIMITS, updateCallingRules } from '../../storage/queries/calling-rules.ts';
import { type AdmitCallInput, admitCall, requireRoomForLeg, settleCall } from '../../storage/queries/calls.ts';
import { addToDoNotCall, onDoNotCall } from '../../storage/queries/do-not-call.ts';
import { onEveryServer } from './every-server.ts';
import { recordMoves } from './record-moves.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace, settlement } from './seed.ts';

const AGENT = '+919810000001';
const CUSTOMER = '+919810000002';
const THIRD = '+919810000003';

onEveryServer('call permission', (database) => {
  async function ready(rules: Partial<CallingRules> = {}) {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const trunk = await seedTrunk(sql, { workspaceId });
    await updateCallingRules(sql, { workspaceId, patch: rules, now: NOW });
    const place = async (overrides: Partial<AdmitCallInput> = {}) => {
      const { call } = await admitCall(sql, admission({ workspaceId, ...overrides }));
      return call;
    };
    const addLeg = (overrides: Partial<Parameters<typeof requireRoomForLeg>[1]> = {}) =>
      requireRoomForLeg(sql, {
        ...{ trunkId: trunk.id, workspaceId, number: THIRD, isStaff: false, now: NOW },
        callingLimits: NO_CALLING_LIMITS,
        ...overrides,
      });
    return { sql, workspaceId, place, addLeg };
  }

  it('rejects blocked prefixes of workspace and operator for any party', async () => {
    const { place, addLeg } = await ready({ blockedPrefixes: ['+91981'] });
    const other = { agentNumber: '+919800000001', customerNumber: '+919800000002' };
    const blocked = { code: 'DESTINATION_BLOCKED' };
    await expect(place({ ...other, agentNumber: AGENT })).rejects.toMatchObject(blocked);
    await expect(place({ ...other, customerNumber: CUSTOMER })).rejects.toMatchObject(blocked);
    await expect(addLeg()).rejects.toMatchObject(blocked);
    await expect(addLeg({ isStaff: true })).rejects.toMatchObject(blocked);
    await place(other);
    const callingLimits = { ...NO_CALLING_LIMITS, blockedPrefixes: ['+9198'] };
    await expect(place({ ...other, callingLimits })).rejects.toMatchObject(blocked);
    await expect(addLeg({ number: '+919800000003', callingLimits })).rejects.toMatchObject(blocked);
    await addLeg({ number: '+919800000003' });
  });

  it('rejects a leg over a trunk that was disabled or deleted during the call', async () => {
    const { sql, addLeg } = await ready();
    await addLeg();
    await sql`update trunks set status = 'disabled'`;
    await expect(addLeg()).rejects.toMatchObject({ code: 'DIALER_NOT_PROVISIONED' });
    await sql`update trunks set status = 'active', deleted_at = ${NOW}`;
    await expect(addLeg({ isStaff: true })).rejects.toMatchObject({ code: 'DIALER_NOT_PROVISIONED' });
  });

  it('rejects customers and parties on the do-not-call list, but not agents and supervisors', async () => {
    const { sql, workspaceId, place, addLeg } = await ready();
    expect(await addToDoNotCall(sql, { workspaceId, numbers: [CUSTOMER, CUSTOMER, THIRD], now: NOW })).toBe(2);
    expect(await addToDoNotCall(sql, { workspaceId, numbers: [CUSTOMER, AGENT], now: NOW })).toBe(1);
    const listed = { code: 'DO_NOT_CALL' };
    await expect(place()).rejects.toMatchObject(listed);
    await expect(addLeg()).rejects.toMatchObject(listed);
    await addLeg({ isStaff: true });
    // AGENT is on the list as well.
    await place({ customerNumber: '+919810000009' });
    const elsewhere = (await seedWorkspace(sql)).workspace.id;
    expect(await onDoNotCall(sql, { workspaceId: elsewhere, numbers: [CUSTOMER] })).toEqual([]);
    expect(await onDoNotCall(sql, { workspaceId, numbers: ['+919810000009', THIRD, CUSTOMER] })).toEqual([
      CUSTOMER,
      THIRD,
    ]);
  });

  it('limits the do-not-call list and adds nothing beyond the limit', async () => {
    const { sql, workspaceId } = await ready();
    const add = (numbers: string[]) => addToDoNotCall(sql, { workspaceId, numbers, now: NOW, limit: 2 });
    expect(await add([CUSTOMER])).toBe(1);
    const refused = { code: 'QUOTA_EXCEEDED', details: { limit: 2 } };
    await expect(add([AGENT, THIRD])).rejects.toMatchObject(refused);
    expect(await onDoNotCall(sql, { workspaceId, numbers: [AGENT, CUSTOMER, THIRD] })).toEqual([CUSTOMER]);
    expect(await add([AGENT, CUSTOMER])).toBe(1);
    expect(await add([AGENT])).toBe(0);
  });

  it('allows calls to customers within the hours of their time zone only', async () => {
    const callingHours = { timeZone: 'Asia/Kolkata', start: '09:00', end: '21:00' };
    const { place, addLeg } = await ready({ callingHours });
    const early = new Date('2026-01-31T03:29:59Z');
    const outside = {
      code: 'OUTSIDE_CALLING_HOURS',
      details: { time_zone: 'Asia/Kolkata', start: '09:00', end: '21:00' },
    };
    await expect(place({ now: early })).rejects.toMatchObject(outside);
    await expect(addLeg({ now: early })).rejects.toMatchObject(outside);
    await addLeg({ now: early, isStaff: true });
    await place({ now: new Date('2026-01-31T03:30:00Z') });
    await place({ now: new Date('2026-01-31T15:29:59Z') });
    await expect(place({ now: new Date('2026-01-31T15:30:00Z') })).rejects.toMatchObject(outside);
  });

  it('supports hours across midnight', async () => {
    const { place } = await ready({ callingHours: { timeZone: 'UTC', start: '22:00', end: '02:00' } });
    await place({ now: new Date('2026-01-31T23:00:00Z') });
    await place({ now: new Date('2026-02-01T01:59:00Z') });
    const refused = { code: 'OUTSIDE_CALLING_HOURS' };
    await expect(place({ now: new Date('2026-02-01T02:00:00Z') })).rejects.toMatchObject(refused);
    await expect(place({ now: new Date('2026-02-01T21:59:00Z') })).rejects.toMatchObject(refused);
  });

  it('exempts incoming calls, but not the phone they are forwarded to', async () => {
    const { sql, workspaceId, place } = await ready({
      blockedPrefixes: ['+9170'],
      callingHours: { timeZone: 'Asia/Kolkata', start: '09:00', end: '21:00' },
    });
    await addToDoNotCall(sql, { workspaceId, numbers: ['+917000000001'], now: NOW });
    const night = new Date('2026-01-31T20:00:00Z');
    const received = { placedVia: 'inbound', customerNumber: '+917000000001', now: night } as const;
    await place({ ...received, agentNumber: AGENT });
    const forwarded = place({ ...received, agentNumber: '+917000000002' });
    await expect(forwarded).rejects.toMatchObject({ code: 'DESTINATION_BLOCKED' });
  });

  it('excludes incoming calls from placement and prefix limits', async () => {
    const { sql, workspaceId, place } = await ready({ destinationLimits: [{ prefix: '+9170', callsPerMinute: 1 }] });
    await sql`update trunks set channels = 50 where owner_workspace_id = ${workspaceId}`;
    const caller = '+917000000001';
    for (let i = 0; i < 20; i++) await place({ placedVia: 'inbound', customerNumber: caller });
    await place({ customerNumber: caller });
    await expect(place({ customerNumber: caller })).rejects.toMatchObject({ code: 'DESTINATION_RATE_LIMITED' });
  });

  it("admits incoming calls while the trunk's carrier is down", async () => {
    const { place } = await ready();
    const isLineDown = () => true;
    await expect(place({ isLineDown })).rejects.toMatchObject({ code: 'CARRIER_LINE_DOWN' });
    await place({ isLineDown, placedVia: 'inbound' });
  });

  it('limits calls per minute to a prefix, with Retry-After', async () => {
    const { place } = await ready({ destinationLimits: [{ prefix: '+9198', callsPerMinute: 2 }] });
    await place({ now: NOW });
    await place({ now: later(10_000) });
    const third = place({ now: later(20_500) });
    await expect(third).rejects.toMatchObject({ code: 'DESTINATION_RATE_LIMITED', retryAfterS: 40 });
    await place({ now: later(20_500), agentNumber: '+917000000001', customerNumber: '+917000000002' });
    await place({ now: later(60_000) });
    await expect(place({ now: later(60_001) })).rejects.toMatchObject({ code: 'DESTINATION_RATE_LIMITED' });
  });

  it('ignores calls to a prefix from before the clock was set back', async () => {
    const { place } = await ready({ destinationLimits: [{ prefix: '+9198', callsPerMinute: 1 }] });
    await place();
    const earlier = { now: later(-3_600_000) };
    await place(earlier);
    await expect(place(earlier)).rejects.toMatchObject({ code: 'DESTINATION_RATE_LIMITED', retryAfterS: 60 });
  });

  it('applies the limits of operator and workspace together', async () => {
    const { place } = await ready({ destinationLimits: [{ prefix: '+91', callsPerMinute: 5 }] });
    const callingLimits = { ...NO_CALLING_LIMITS, destinationLimits: [{ prefix: '+919', callsPerMinute: 1 }] };
    await place({ callingLimits });
    const second = place({ callingLimits });
    await expect(second).rejects.toMatchObject({ details: { prefix: '+919', limit: 1 } });
  });

  it('admits exactly the allowed number of concurrent calls', async () => {
    const { place } = await ready({ destinationLimits: [{ prefix: '+91', callsPerMinute: 3 }] });
    const answers = await Promise.allSettled(Array.from({ length: 8 }, () => place()));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  });

  it('counts each added leg once, even after its call ended', async () => {
    const { sql, place, addLeg } = await ready({ destinationLimits: [{ prefix: '+9170', callsPerMinute: 2 }] });
    const call = await place();
    const number = '+917000000001';
    const dialing = (legId: string, ms: number) => ({
      event: 'leg.dialing',
      state: 'bridged' as const,
      ...{ leg: null, sipStatus: null, hangupCause: null, detail: null },
      ...{ at: later(ms), data: { leg_id: legId, isStaff: false } },
    });
    const leg = { isStaff: false, number, mode: null, state: 'dialing', muted: false };
    const legs = ['leg_1', 'leg_2'].map((legId) => ({
      ...{ ...leg, legId, joinedAt: null, leftAt: null, hangupCause: null },
    }));
    const own = ['agent', 'customer'].map((role) => ({ ...legs[0], legId: role, role, number: null }));
    await recordMoves(sql, call.callId, [dialing('leg_1', 1_000)]);
    await sql`update calls set legs = ${sql.json([...own, ...legs])} where call_id = ${call.callId}`;
    await addLeg({ number, now: later(2_000) });
    await recordMoves(sql, call.callId, [dialing('leg_2', 2_000)]);
    const refused = { code: 'DESTINATION_RATE_LIMITED', retryAfterS: 58 };
    await expect(addLeg({ number, now: later(3_000) })).rejects.toMatchObject(refused);
    await settleCall(sql, { ...ended(call.callId, later(4_000)), talkSeconds: 1 });
    await expect(addLeg({ number, now: later(5_000) })).rejects.toMatchObject({ code: 'DESTINATION_RATE_LIMITED' });
    await addLeg({ number, now: later(61_500) });
  });

  it('stops at the daily spend cap until the day of the time zone ends', async () => {
    const rules = { dailySpendCapNano: 30_000_000n };
    const { sql, place, addLeg } = await ready({
      ...rules,
      callingHours: { timeZone: 'Asia/Kolkata', start: '00:00', end: '23:59' },
    });
    const noon = new Date('2026-01-31T06:30:00Z');
    const call = await place({ now: noon, agentRingTimeoutS: 5, customerRingTimeoutS: 5, trunkId: null });
    // Reservations count: 70 s at 0.06 USD a minute.
    const reached = {
      code: 'DAILY_SPEND_CAP_REACHED',
      details: { resets_at: '2026-01-31T18:30:00.000Z' },
    };
    await expect(place({ now: noon })).rejects.toMatchObject(reached);
    await settleCall(sql, { ...ended(call.callId, noon), talkSeconds: 29 });
    const second = await place({ now: noon, agentRingTimeoutS: 5, customerRingTimeoutS: 5 });
    await settleCall(sql, { ...ended(second.callId, noon), talkSeconds: 1 });
    await expect(place({ now: noon })).rejects.toMatchObject(reached);
    await expect(addLeg({ now: noon })).rejects.toMatchObject(reached);
    await place({ now: new Date('2026-01-31T18:30:00Z') });
  });

  it('counts texts that a call in progress has played towards the daily spend cap', async () => {
    const { sql, place } = await ready({ dailySpendCapNano: 30_000_000n });
    await sql`update trunks set price_per_minute_nano = 0`;
    const call = await place();
    await place();
    const data = { playback_id: 'play_1', characters: 2_000 };
    await inTransaction(sql, (tx) => chargePlayback(tx, call, { data, now: NOW }));
    await expect(place()).rejects.toMatchObject({ code: 'DAILY_SPEND_CAP_REACHED' });
  });

  it('stops at the lower cap of the operator', async () => {
    const { place } = await ready({ dailySpendCapNano: 1_000_000_000_000n });
    const callingLimits = { ...NO_CALLING_LIMITS, dailySpendCapNano: 1n };
    await place({ callingLimits });
    await expect(place({ callingLimits })).rejects.toMatchObject({ code: 'DAILY_SPEND_CAP_REACHED' });
    await place();
  });

  it('replays a live call by its reference despite the rules', async () => {
    const { sql, workspaceId, place } = await ready();
    const call = await place({ referenceId: 'order-1' });
    await addToDoNotCall(sql, { workspaceId, numbers: [CUSTOMER], now: NOW });
    expect((await place({ referenceId: 'order-1' })).callId).toBe(call.callId);
    await expect(place({ referenceId: 'order-2' })).rejects.toMatchObject({ code: 'DO_NOT_CALL' });
    expect(await sql`select 1 from calls where reference_id = 'order-2'`).toHaveLength(0);
  });
});

function ended(callId: string, at: Date) {
  return settlement(callId, { answerTime: at, endTime: at, totalSeconds: 60 });
}
