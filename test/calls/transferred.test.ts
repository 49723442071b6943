import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicLeg } from '../../actors/call-view.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { AUDIBLE_DBOV, INAUDIBLE_DBOV, nextLevel, untilAudible } from './next-level.ts';
import { AGENT_HZ, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

const TARGET = '+919833333333';
const TARGET_HZ = 880;

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

async function talk(target: Parameters<Platform['phone']>[1] = {}) {
  const third = await platform.phone(TARGET, { audio: { kind: 'tone', frequencyHz: TARGET_HZ }, ...target });
  const phones = await platform.parties();
  const { call_id: callId } = await platform.place({ record: true });
  await platform.until(callId, 'recording.started');
  const ask = <Data>(method: string, below: string, body?: unknown) =>
    platform.ask<Data>(method, `/dialer/click2call/${callId}/${below}`, body);
  const transfer = (body: Record<string, unknown> = {}) =>
    ask<{ leg: PublicLeg; transfer: { id: string } }>('POST', 'transfer', {
      endpoint: { type: 'phone', number: TARGET },
      ...body,
    });
  return { ...phones, third, callId, ask, transfer };
}

function levels(pcm: Int16Array, frequencyHz: number): number[] {
  const count = Math.floor(pcm.length / 4000);
  return Array.from({ length: count }, (_, i) => toneLevelDbov(pcm.subarray(i * 4000, (i + 1) * 4000), frequencyHz));
}

describe('blind transfer of the agent', () => {
  it('connects customer and target, hangs up the agent, records the target instead and charges its leg', async () => {
    const { agent, customer, third, callId, transfer } = await talk();
    const asked = await transfer();
    expect(asked.status).toBe(202);
    const { leg_id: legId } = asked.body.data.leg;
    const completed = await platform.until(callId, 'transfer.completed');
    expect(completed).toMatchObject({ data: { leg_id: legId, replaces: 'agent', mode: 'blind' } });
    await agent.until('bye');
    await untilAudible(customer, { audible: [TARGET_HZ], inaudible: [AGENT_HZ] });
    await untilAudible(third, { audible: [CUSTOMER_HZ], inaudible: [AGENT_HZ] });
    await nextLevel(customer, TARGET_HZ);
    await platform.until(callId, 'leg.left', ({ leg }) => leg === 'agent');
    const live = await platform.call(callId);
    expect(live.state).toBe('bridged');
    expect(live.legs.map(({ leg_id, role, state }) => [leg_id, role, state])).toEqual([
      ['agent', 'agent', 'ended'],
      ['customer', 'customer', 'answered'],
      [legId, 'agent', 'answered'],
    ]);
    expect(live.legs[0]).toMatchObject({ hangup_cause: 'BLIND_TRANSFER' });
    third.hangup();
    const events = await platform.ended(callId);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', leg: 'agent' });
    const call = await platform.call(callId);
    expect(call).toMatchObject({ hangup_cause: 'NORMAL_CLEARING', billing_status: 'billed' });
    expect(call.legs_cost_usd).toBeGreaterThan(0);
    const { left, right } = await platform.recordingOf(callId);
    expect(Math.max(...levels(left, TARGET_HZ))).toBeGreaterThan(AUDIBLE_DBOV);
    expect(Math.max(...levels(right, TARGET_HZ))).toBeLessThan(INAUDIBLE_DBOV);
  });

  it('reconnects agent and customer when the target is busy', async () => {
    const { agent, customer, callId, transfer } = await talk({ answer: { status: 486 } });
    expect((await transfer()).status).toBe(202);
    expect(await platform.until(callId, 'transfer.failed')).toMatchObject({ hangup_cause: 'USER_BUSY' });
    await untilAudible(customer, { audible: [AGENT_HZ], inaudible: [TARGET_HZ] });
    agent.hangup();
    await platform.ended(callId);
    expect((await platform.call(callId)).legs_cost_usd).toBeNull();
  });
});

describe('transfer to a number on the do-not-call list', () => {
  it('can replace the agent, but not the customer', async () => {
    const listed = await platform.ask('POST', '/dialer/do-not-call', { numbers: [TARGET] });
    expect(listed.status).toBe(200);
    const { agent, callId, transfer } = await talk({ answer: { status: 486 } });
    expect((await transfer({ leg: 'customer' })).body).toMatchObject({ code: 'DO_NOT_CALL' });
    expect((await transfer()).status).toBe(202);
    await platform.until(callId, 'transfer.failed');
    agent.hangup();
    await platform.ended(callId);
    await platform.ask('DELETE', `/dialer/do-not-call/${encodeURIComponent(TARGET)}`);
  });
});

describe('attended transfer of the customer', () => {
  it('connects customer and target alone, then target and agent', async () => {
    const { agent, customer, third, callId, ask, transfer } = await talk();
    const { status, body } = await transfer({ leg: 'customer', mode: 'attended' });
    expect(status).toBe(202);
    expect((await transfer()).body).toMatchObject({ code: 'TRANSFER_IN_PROGRESS' });
    await platform.until(callId, 'leg.joined');
    await untilAudible(third, { audible: [CUSTOMER_HZ], inaudible: [AGENT_HZ] });
    await untilAudible(customer, { audible: [TARGET_HZ], inaudible: [AGENT_HZ] });
    expect((await ask('POST', 'transfer/customer/complete')).body).toMatchObject({ code: 'TRANSFER_NOT_FOUND' });
    expect((await ask('POST', `transfer/${body.data.transfer.id}/complete`)).status).toBe(200);
    await customer.until('bye');
    await untilAudible(agent, { audible: [TARGET_HZ], inaudible: [CUSTOMER_HZ] });
    agent.hangup();
    await third.until('bye');
    const events = (await platform.ended(callId)).map(({ event }) => event);
    expect(events.filter((event) => event.startsWith('transfer.'))).toEqual(['transfer.started', 'transfer.completed']);
  });

  it('hangs up only the target when cancelled', async () => {
    const { agent, customer, third, callId, ask, transfer } = await talk();
    await transfer({ mode: 'attended' });
    await platform.until(callId, 'leg.joined');
    expect((await ask('DELETE', 'transfer')).status).toBe(200);
    await third.until('bye');
    await untilAudible(customer, { audible: [AGENT_HZ], inaudible: [TARGET_HZ] });
    expect((await ask('DELETE', 'transfer')).body).toMatchObject({ code: 'TRANSFER_NOT_FOUND' });
    agent.hangup();
    await platform.ended(callId);
  });
});
