import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { header } from '../../sip/message/index.ts';
import { legHandlesOf } from '../../storage/queries/calls.ts';
import { eventually } from '../eventually.ts';
import type { SoftphoneCall } from '../softphone/call.ts';
import type { Softphone, SoftphoneOptions } from '../softphone/softphone.ts';
import { AUDIBLE_DBOV } from './next-level.ts';
import { type Platform, startPlatform } from './platform.ts';

/** RFC 3515. */

const TARGET = '+919833333333';
const TARGET_HZ = 880;

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({ trunk: { refer: 'agent' } });
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

async function talk(target: Partial<SoftphoneOptions> = {}) {
  const third = await platform.phone(TARGET, { audio: { kind: 'tone', frequencyHz: TARGET_HZ }, ...target });
  const phones = await platform.parties();
  const { call_id: callId } = await platform.place();
  await platform.until(callId, 'call.bridged');
  return { ...phones, third, callId };
}

function refer(call: SoftphoneCall, referTo = `<sip:${TARGET}@carrier.example>`): Promise<number> {
  return call.send('REFER', [['Refer-To', referTo]], '');
}

/** Waits for a NOTIFY with this status line. */
async function notified(phone: Softphone, line: string): Promise<{ state: string; event: string }> {
  const { message } = await phone.until(
    'notified',
    ({ message: { body } }) => body.toString() === `SIP/2.0 ${line}\r\n`,
  );
  expect(header(message, 'Content-Type')).toMatch(/^message\/sipfrag/);
  return { state: header(message, 'Subscription-State') ?? '', event: header(message, 'Event') ?? '' };
}

describe('REFER of the agent', () => {
  it('transfers the call blindly, reports progress, and hangs up the phone once the target answers', async () => {
    const { agent, customer, third, callId } = await talk();
    expect(await refer(agent.call)).toBe(202);
    expect(await notified(agent, '100 Trying')).toMatchObject({
      state: expect.stringMatching(/^active/),
      event: 'refer',
    });
    expect(await notified(agent, '200 OK')).toMatchObject({ state: 'terminated;reason=noresource' });
    await agent.until('bye', ({ by }) => by === 'peer');
    const completed = await platform.until(callId, 'transfer.completed');
    expect(completed).toMatchObject({ data: { replaces: 'agent', mode: 'blind', requested_by: 'refer' } });
    await customer.untilTone(TARGET_HZ, AUDIBLE_DBOV);
    const names = agent.log.all.map(({ type }) => type);
    expect(names.lastIndexOf('notified')).toBeLessThan(names.indexOf('bye'));
    third.hangup();
    await platform.ended(callId);
    const call = await platform.call(callId);
    expect(call.legs[2]).toMatchObject({ role: 'agent', endpoint: { number: TARGET } });
    expect(call.legs_cost_usd).toBeGreaterThan(0);
  });

  it('with Replaces lets the target replace its consultation call', async () => {
    const { agent, customer, third, callId } = await talk();
    const replaced = 'Replaces=consult%40pbx%3Bto-tag%3Dt1%3Bfrom-tag%3Df1';
    expect(await refer(agent.call, `<sip:${TARGET}@carrier.example?${replaced}>`)).toBe(202);
    const { message } = await third.until('invite');
    expect(header(message, 'Replaces')).toBe('consult@pbx;to-tag=t1;from-tag=f1');
    expect(header(message, 'Require')).toBe('replaces');
    expect(await notified(agent, '200 OK')).toMatchObject({ state: 'terminated;reason=noresource' });
    await platform.until(callId, 'transfer.completed');
    await customer.untilTone(TARGET_HZ, AUDIBLE_DBOV);
    expect(header((await customer.until('invite')).message, 'Replaces')).toBeUndefined();
    customer.hangup();
    await platform.ended(callId);
  });

  it('with Replaces of another call of the platform, on any server, fails with 501 and keeps the call', async () => {
    const { agent, customer, third, callId } = await talk();
    await eventually(async () => expect(await legHandlesOf(platform.sql, callId)).toHaveLength(2));
    await platform.sql`
      update calls set leg_handles = leg_handles || '{"leg_1": {"kind": "dialog", "callId": "on-another-server"}}'
      where call_id = ${callId}`;
    for (const replaced of [customer.call.callId, 'on-another-server']) {
      const replaces = `Replaces=${encodeURIComponent(`${replaced};to-tag=t1;from-tag=f1`)}`;
      expect(await refer(agent.call, `<sip:${TARGET}@carrier.example?${replaces}>`)).toBe(501);
    }
    expect(third.counts.invites).toBe(0);
    agent.hangup();
    const events = await platform.ended(callId);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', hangup_cause: 'NORMAL_CLEARING' });
    expect(events.map(({ event }) => event)).not.toContain('transfer.started');
  });

  it('succeeds when the phone hangs up right after the 202', async () => {
    const { agent, customer, third, callId } = await talk({ answer: 'manual' });
    expect(await refer(agent.call, `<tel:+91-98333-33333>`)).toBe(202);
    agent.hangup();
    await third.until('ringing');
    third.answer();
    await platform.until(callId, 'transfer.completed');
    await customer.untilTone(TARGET_HZ, AUDIBLE_DBOV);
    customer.hangup();
    await platform.ended(callId);
  });

  it('leaves both parties connected when the target is busy, and can be repeated', async () => {
    const { agent, third, callId } = await talk({ answer: { status: 486 } });
    expect(await refer(agent.call)).toBe(202);
    expect(await notified(agent, '486 Busy Here')).toMatchObject({ state: 'terminated;reason=noresource' });
    await platform.until(callId, 'transfer.failed');
    const { packets } = agent.received();
    await agent.untilReceived((received) => received.packets > packets + 10);
    await third.stop();
    await platform.phone('+919844444444');
    expect(await refer(agent.call, '<sip:+919844444444@carrier.example>')).toBe(202);
    expect(await notified(agent, '200 OK')).toMatchObject({ event: expect.stringMatching(/^refer;id=\d+$/) });
    await agent.until('bye');
    await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
  });

  it('reports 487 when the call ends first, and rejects another REFER meanwhile', async () => {
    const { agent, customer, third, callId } = await talk({ answer: 'manual' });
    expect(await refer(agent.call)).toBe(202);
    await third.until('ringing');
    expect(await refer(agent.call)).toBe(491);
    customer.hangup();
    expect(await notified(agent, '487 Request Terminated')).toMatchObject({ state: 'terminated;reason=noresource' });
    await third.until('cancelled');
    await platform.ended(callId);
  });

  it.each([
    { referTo: '<sip:+14155550100@carrier.example>', status: 484, why: 'outside the number plan' },
    { referTo: '<sip:alice@carrier.example>', status: 484, why: 'without a number' },
    { referTo: `<sip:${TARGET}@carrier.example>`, status: 403, why: 'with a blocked prefix' },
  ])('rejects a target $why with $status without dialing', async ({ referTo, status }) => {
    const block = (prefixes: string[]) =>
      platform.ask('PATCH', '/dialer/calling-rules', { blocked_prefixes: prefixes });
    const { agent, third, callId } = await talk();
    await block(['+919833']);
    expect(await refer(agent.call, referTo)).toBe(status);
    await block([]);
    expect(third.counts.invites).toBe(0);
    agent.hangup();
    const events = await platform.ended(callId);
    expect(events.map(({ event }) => event)).not.toContain('transfer.started');
  });

  it.each([
    { referTo: '<sip:carrier.example>', status: 400 },
    { referTo: '<http://example.com/>', status: 400 },
    { referTo: `<sip:${TARGET}@a.example>, <sip:${TARGET}@b.example>`, status: 400 },
    { referTo: `<sip:${TARGET}@carrier.example?Replaces=abc%3Bto-tag%3D1>`, status: 400 },
    { referTo: `<sip:${TARGET}@carrier.example?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2%0D%0AEvil:1>`, status: 400 },
    { referTo: `<sip:${TARGET}@carrier.example?Replaces=%E0%A4%A>`, status: 400 },
    { referTo: `<sip:${TARGET}@carrier.example?Subject=hello>`, status: 501 },
    { referTo: `<sip:${TARGET}@carrier.example;method=BYE>`, status: 501 },
  ])('rejects $referTo with $status', async ({ referTo, status }) => {
    const { agent, callId } = await talk();
    expect(await refer(agent.call, referTo)).toBe(status);
    agent.hangup();
    await platform.ended(callId);
  });
});

describe('refer setting of a trunk', () => {
  it('permits transfers by none, the agent, or both parties', async () => {
    const { agent, customer, callId } = await talk();
    expect(await refer(customer.call)).toBe(603);
    agent.hangup();
    await platform.ended(callId);
    const allow = (who: string) => platform.ask('PATCH', `/dialer/trunks/${platform.trunkId}`, { refer: who });
    expect((await allow('none')).body.data).toMatchObject({ refer: 'none' });
    const declined = await talk();
    expect(await refer(declined.agent.call)).toBe(603);
    declined.agent.hangup();
    await platform.ended(declined.callId);
    await allow('both');
    const transferred = await talk();
    expect(await refer(transferred.customer.call)).toBe(202);
    await transferred.customer.until('bye', ({ by }) => by === 'peer');
    transferred.agent.hangup();
    await platform.ended(transferred.callId);
    expect((await allow('anybody')).status).toBe(400);
  });
});
