import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicLeg } from '../../actors/call-view.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import type { Softphone } from '../softphone/softphone.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { AUDIBLE_DBOV, untilAudible, untilLevel } from './next-level.ts';
import { AGENT_HZ, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

const THIRD = '+919833333333';
const THIRD_HZ = 880;
const TONES = { agent: AGENT_HZ, customer: CUSTOMER_HZ, third: THIRD_HZ };
const SILENT_DBOV = -60;

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

async function talk(request: Record<string, unknown> = {}, third: Parameters<Platform['phone']>[1] = {}) {
  const guest = await platform.phone(THIRD, { audio: { kind: 'tone', frequencyHz: THIRD_HZ }, ...third });
  const phones = await platform.parties();
  const { call_id: callId } = await platform.place(request);
  await platform.until(callId, 'call.bridged');
  const path = `/dialer/click2call/${callId}`;
  const ask = <Data>(method: string, below: string, body?: unknown) =>
    platform.ask<Data>(method, `${path}/${below}`, body);
  return { ...phones, guest, callId, ask };
}

const ENDPOINT = { type: 'phone', number: THIRD };

/** Waits until a phone receives these parties, and no others. */
async function untilReceives(phone: Softphone, parties: readonly (keyof typeof TONES)[]): Promise<void> {
  const audible = parties.map((party) => TONES[party]);
  await untilAudible(phone, { audible, inaudible: Object.values(TONES).filter((tone) => !audible.includes(tone)) });
}

const legOf = async (callId: string, role: string): Promise<PublicLeg | undefined> =>
  (await platform.call(callId)).legs.find((leg) => leg.role === role);

describe('third party of a call', () => {
  it('must not be on the do-not-call list, and a refusal leaves the call intact', async () => {
    const { callId, ask } = await talk();
    const list = await platform.ask('POST', '/dialer/do-not-call', { numbers: [THIRD] });
    expect(list.status).toBe(200);
    const refused = await ask('POST', 'legs', { endpoint: ENDPOINT });
    expect([refused.status, refused.body.code]).toEqual([403, 'DO_NOT_CALL']);
    expect(platform.carrier.inviteCounts.get(THIRD) ?? 0).toBe(0);
    const placed = await platform.ask('POST', '/dialer/click2call', {
      agent_number: '+919844444444',
      customer_number: THIRD,
    });
    expect([placed.status, placed.body.code]).toEqual([403, 'DO_NOT_CALL']);
    await platform.ask('DELETE', `/dialer/do-not-call/${encodeURIComponent(THIRD)}`);
    expect((await ask('POST', 'legs', { endpoint: ENDPOINT })).status).toBe(202);
    await platform.until(callId, 'leg.joined');
    await ask('POST', 'hangup');
    await platform.ended(callId);
  });

  it("joins with audio, appears on the customer's recording channel, leaves, and costs per second", async () => {
    const { agent, customer, guest, callId, ask } = await talk({ record: true });
    await platform.until(callId, 'recording.started');
    const { status, body } = await ask<{ leg: PublicLeg }>('POST', 'legs', { endpoint: ENDPOINT });
    const { leg } = body.data;
    expect({ status, leg }).toMatchObject({ status: 202, leg: { role: 'party', endpoint: ENDPOINT, left_at: null } });
    const joined = await platform.until(callId, 'leg.joined');
    expect(joined).toMatchObject({ leg: null, data: { leg_id: leg.leg_id } });
    await untilReceives(agent, ['customer', 'third']);
    await untilReceives(customer, ['agent', 'third']);
    await untilReceives(guest, ['agent', 'customer']);
    expect(await legOf(callId, 'party')).toMatchObject({ state: 'answered', joined_at: expect.any(String) });

    expect((await ask('POST', 'mute', { leg: leg.leg_id })).status).toBe(200);
    await untilLevel(agent, THIRD_HZ, { below: SILENT_DBOV });
    expect(await legOf(callId, 'party')).toMatchObject({ muted: true });

    expect((await ask('DELETE', `legs/${leg.leg_id}`)).status).toBe(200);
    expect(await legOf(callId, 'party')).toMatchObject({ state: 'ended', hangup_cause: 'NORMAL_CLEARING' });
    await untilReceives(agent, ['customer']);
    agent.hangup();
    const events = await platform.ended(callId);
    const legEvents = events.filter(({ event }) => event.startsWith('leg.')).map(({ event }) => event);
    expect(legEvents).toEqual(['leg.dialing', 'leg.ringing', 'leg.joined', 'leg.left']);

    const call = await platform.call(callId);
    expect(call.legs.map(({ role, state }) => `${role} ${state}`)).toEqual([
      'agent ended',
      'customer ended',
      'party ended',
    ]);
    const [, customerLeg, third] = call.legs;
    expect(third!.quality).toMatchObject({ codec: 'PCMU', packets_lost: 0 });
    expect(third!.quality!.packets_received).toBeGreaterThan(30);
    expect(customerLeg!.quality).toEqual(call.quality!.customer);
    const seconds = Math.ceil((Date.parse(call.legs[2]!.left_at!) - Date.parse(call.legs[2]!.joined_at!)) / 1000);
    expect(Math.abs(call.legs_cost_usd! - seconds * 0.01)).toBeLessThan(0.0101);
    const { rows } = await listUsage(
      platform.sql,
      { workspaceId: platform.tandem.workspaceId },
      { page: 1, limit: 50 },
    );
    expect(rows.filter(({ operation, resourceId }) => operation === 'call_legs' && resourceId === callId)).toHaveLength(
      1,
    );

    const recording = await platform.recordingOf(callId);
    const at = Math.round(((Date.parse(joined.at) - Date.parse(call.answer_time!)) / 1000 + 0.5) * 8000);
    expect(toneLevelDbov(recording.right.subarray(at, at + 2000), THIRD_HZ)).toBeGreaterThan(AUDIBLE_DBOV);
    expect(toneLevelDbov(recording.right.subarray(at, at + 2000), CUSTOMER_HZ)).toBeGreaterThan(AUDIBLE_DBOV);
    expect(toneLevelDbov(recording.left.subarray(at, at + 2000), THIRD_HZ)).toBeLessThan(SILENT_DBOV);
  });

  it('fails alone when busy', async () => {
    const { agent, callId, ask } = await talk({}, { answer: { status: 486 } });
    expect((await ask('POST', 'legs', { endpoint: ENDPOINT })).status).toBe(202);
    const failed = await platform.until(callId, 'leg.failed');
    expect(failed).toMatchObject({ sip_status: 486, hangup_cause: 'USER_BUSY' });
    await untilReceives(agent, ['customer']);
    agent.hangup();
    await platform.ended(callId);
    expect((await platform.call(callId)).legs_cost_usd).toBeNull();
  });

  it('leaves the others connected when it hangs up, and ends when the customer leaves', async () => {
    const first = await talk();
    await first.ask('POST', 'legs', { endpoint: ENDPOINT });
    await platform.until(first.callId, 'leg.joined');
    first.guest.hangup();
    const left = await platform.until(first.callId, 'leg.left');
    await untilReceives(first.customer, ['agent']);
    await first.ask('POST', 'legs', { endpoint: ENDPOINT });
    await first.guest.log.until('invite');
    await platform.until(first.callId, 'leg.joined', ({ sequence }) => sequence > left.sequence);
    first.customer.hangup();
    const events = await platform.ended(first.callId);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', leg: 'customer' });
    expect((await platform.call(first.callId)).legs.every(({ state }) => state === 'ended')).toBe(true);
  });

  it('requires a free channel and an allowed prefix, like a call', async () => {
    await using small = await startPlatform({ trunk: { channels: 2, allowed_prefixes: ['+9198'] } });
    const { agent } = await small.parties();
    const { call_id: callId } = await small.place();
    await small.until(callId, 'call.bridged');
    const add = (number: string) =>
      small.ask('POST', `/dialer/click2call/${callId}/legs`, { endpoint: { type: 'phone', number } });
    expect(await add('+917000000001')).toMatchObject({ body: { code: 'destination_not_allowed' } });
    await small.phone(THIRD);
    const atOnce = await Promise.all([add(THIRD), add(THIRD), add(THIRD)]);
    expect(atOnce.map(({ status, body }) => [status, body.code]).sort()).toEqual([
      [202, undefined],
      [429, 'no_free_channel'],
      [429, 'no_free_channel'],
    ]);
    agent.hangup();
    await small.ended(callId);
  });

  it('fails for a forbidden number, an unknown leg and an ended call', async () => {
    const { agent, callId, ask } = await talk();
    const wrong = await ask('POST', 'legs', { endpoint: { type: 'phone', number: '+15551234567' } });
    expect(wrong).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
    expect(await ask('DELETE', 'legs/agent')).toMatchObject({ status: 404, body: { code: 'LEG_NOT_FOUND' } });
    expect(await ask('POST', 'mute', { leg: 'leg_00000000-0000-4000-8000-000000000001' })).toMatchObject({
      status: 404,
      body: { code: 'LEG_NOT_FOUND' },
    });
    agent.hangup();
    await platform.ended(callId);
    const late = await ask('POST', 'legs', { endpoint: ENDPOINT });
    expect(late).toMatchObject({ status: 409, body: { code: 'CALL_NOT_LIVE' } });
  });
});

describe('supervisor of a call', () => {
  it('listens, whispers and barges in, with an event per change, and leaves the call intact', async () => {
    const { agent, customer, guest, callId, ask } = await talk();
    const listen = { mode: 'listen', endpoint: ENDPOINT };
    const { status, body } = await ask<{ supervision: { id: string } }>('POST', 'supervise', listen);
    const { supervision } = body.data;
    expect({ status, supervision }).toMatchObject({ status: 201, supervision: { mode: 'listen' } });
    await platform.until(callId, 'supervision.started');
    await untilReceives(guest, ['agent', 'customer']);
    await untilReceives(agent, ['customer']);
    await untilReceives(customer, ['agent']);

    const change = (mode: string) => ask('PATCH', `supervise/${supervision.id}`, { mode });
    expect((await change('whisper')).status).toBe(200);
    await untilReceives(agent, ['customer', 'third']);
    await untilReceives(customer, ['agent']);

    const barged = await change('barge');
    expect(barged.body.data).toMatchObject({ supervision: { mode: 'barge' } });
    await untilReceives(agent, ['customer', 'third']);
    await untilReceives(customer, ['agent', 'third']);
    expect(await ask('DELETE', `legs/${supervision.id}`)).toMatchObject({ status: 404 });
    expect((await ask('DELETE', `supervise/${supervision.id}`)).status).toBe(200);
    await untilReceives(agent, ['customer']);
    await untilReceives(customer, ['agent']);
    agent.hangup();
    const events = await platform.ended(callId);
    expect(
      events.filter(({ event }) => event.startsWith('supervision.')).map(({ event, data }) => [event, data?.mode]),
    ).toEqual([
      ['supervision.started', 'listen'],
      ['supervision.changed', 'whisper'],
      ['supervision.changed', 'barge'],
      ['supervision.ended', undefined],
    ]);
    const audited =
      await platform.sql`select details from audit_log where action = 'call.supervised' and target_id = ${callId}`;
    expect(audited.map(({ details }) => details.mode)).toEqual(['listen', 'whisper', 'barge', undefined]);
  });

  it('does not hear a customer on hold, who hears music', async () => {
    const { agent, customer, guest, callId, ask } = await talk();
    await ask('POST', 'supervise', { mode: 'barge', endpoint: ENDPOINT });
    await platform.until(callId, 'supervision.started');
    expect((await ask('POST', 'hold', { leg: 'customer' })).status).toBe(200);
    await untilReceives(guest, ['agent']);
    await untilReceives(agent, ['third']);
    await untilReceives(customer, []);
    expect((await ask('POST', 'resume', { leg: 'customer' })).status).toBe(200);
    await untilReceives(guest, ['agent', 'customer']);
    agent.hangup();
    await platform.ended(callId);
  });
});
