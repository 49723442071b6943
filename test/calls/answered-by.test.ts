import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallEvent } from '../../bin/cli/api-client.ts';
import { beep, joined, Speakers, silence } from '../media/answering/answers.ts';
import type { SoftphoneAudio } from '../softphone/audio-source.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

let platform: Platform;
let speakers: Speakers;
beforeAll(async () => {
  platform = await startPlatform();
  speakers = await Speakers.start();
});
afterAll(async () => {
  await speakers[Symbol.asyncDispose]();
  await platform[Symbol.asyncDispose]();
});

async function person(): Promise<SoftphoneAudio> {
  return { kind: 'samples', samples: joined(silence(300), await speakers.say('hello', 'en-us')) };
}

async function machine(): Promise<SoftphoneAudio> {
  const samples = joined(
    silence(200),
    await speakers.say('hi you have reached the voicemail of john', 'en-us'),
    silence(300),
    await speakers.say('please leave a message after the tone', 'en-us'),
    silence(400),
    beep(1000, 500),
  );
  return { kind: 'samples', samples };
}

async function answeredBy(audio: SoftphoneAudio, onMachine: 'continue' | 'hangup', more: Record<string, unknown> = {}) {
  const phones = await platform.parties({ customer: { audio } });
  const request = { machine_detection: { mode: 'enable', on_machine: onMachine }, ...more };
  const { call_id: callId } = await platform.place(request);
  return { ...phones, callId, request };
}

const found = (events: readonly CallEvent[]) =>
  events.flatMap(({ event, data }) => (event === 'machine.detected' ? [data?.result] : []));

describe('call with machine detection', () => {
  it('continues when a person answers, with audio from the first word on', async () => {
    const { agent, customer, callId } = await answeredBy(await person(), 'hangup');
    const detected = await platform.until(callId, 'machine.detected');
    expect(detected).toMatchObject({ state: 'bridged', leg: 'customer', data: { result: 'human' } });
    expect(detected.data?.after_ms).toBeGreaterThan(500);
    expect(agent.received().pcm.some((sample) => Math.abs(sample) > 2000)).toBe(true);
    await customer.untilReceived(({ packets }) => packets > 50);
    agent.hangup();
    const events = await platform.ended(callId);
    expect(found(events)).toEqual(['human']);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', leg: 'agent', detail: null });
  });

  it('reports a machine and its beep, and continues', async () => {
    const { agent, callId } = await answeredBy(await machine(), 'continue');
    await platform.until(callId, 'machine.detected', ({ data }) => data?.result === 'beep');
    agent.hangup();
    const events = await platform.ended(callId);
    expect(found(events)).toEqual(['machine', 'beep']);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', hangup_cause: 'NORMAL_CLEARING', detail: null });
  });

  it('hangs up when a machine answers, and reports why', async () => {
    const { agent, customer, callId } = await answeredBy(await machine(), 'hangup', { record: true });
    const detected = await platform.until(callId, 'machine.detected');
    expect(detected.data?.result).toBe('machine');
    const events = await platform.ended(callId);
    expect(found(events)).toEqual(['machine']);
    const detail = 'an answering machine answered';
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', hangup_cause: 'NORMAL_CLEARING', detail });
    await Promise.all([agent.log.until('bye'), customer.log.until('bye')]);
    expect(await platform.call(callId)).toMatchObject({
      state: 'completed',
      hangup_cause: 'NORMAL_CLEARING',
      error: null,
      error_detail: detail,
      billing_status: 'billed',
    });
    expect((await platform.recordingOf(callId)).durationMs).toBeGreaterThan(1000);
  });

  it('hangs up when a fax machine answers', async () => {
    const samples = joined(silence(500), beep(1100, 500));
    const { callId } = await answeredBy({ kind: 'samples', samples }, 'hangup');
    const events = await platform.ended(callId);
    expect(found(events)).toEqual(['fax']);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', detail: 'a fax machine answered' });
  });

  it('continues as unknown with a silent phone, and repeats for its reference', async () => {
    const { agent, callId, request } = await answeredBy({ kind: 'none' }, 'hangup', { reference_id: 'silent-phone' });
    await platform.until(callId, 'machine.detected', ({ data }) => data?.result === 'unknown');
    const again = await platform.ask('POST', '/dialer/click2call', {
      agent_number: AGENT,
      customer_number: CUSTOMER,
      ...request,
    });
    expect(again).toMatchObject({ status: 200, body: { data: { replayed: true, call: { call_id: callId } } } });
    agent.hangup();
    expect(found(await platform.ended(callId))).toEqual(['unknown']);
  });

  it('detects nothing unless requested', async () => {
    const { agent } = await platform.parties({ customer: { audio: await machine() } });
    const { call_id: callId } = await platform.place();
    await agent.untilReceived(({ packets }) => packets > 200);
    agent.hangup();
    expect(found(await platform.ended(callId))).toEqual([]);
  });
});
