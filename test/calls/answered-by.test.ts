import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallEvent } from '../../bin/cli/api-client.ts';
import { beep, joined, Speakers, silence } from '../media/answering/answers.ts';
import type { SoftphoneAudio } from '../softphone/audio-source.ts';
import type { Softphone } from '../softphone/softphone.ts';
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

/** The detector takes a longer gap for a pause. */
const LONGEST_GAP_MS = 300;

/** Calls a customer with this audio. Repeats a failed call if this process was too busy to send the audio without gap. */
async function answeredBy(
  { audio, onMachine, ...more }: { audio: SoftphoneAudio; onMachine: 'continue' | 'hangup' } & Record<string, unknown>,
  check: (call: { agent: Softphone; customer: Softphone; callId: string; request: object }) => Promise<void>,
): Promise<void> {
  for (;;) {
    const phones = await platform.parties({ customer: { audio } });
    const request = { machine_detection: { mode: 'enable', on_machine: onMachine }, ...more };
    const { call_id: callId } = await platform.place(request);
    try {
      return await check({ ...phones, callId, request });
    } catch (error) {
      if (phones.customer.longestGapMs <= LONGEST_GAP_MS) throw error;
      await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
    }
  }
}

const found = (events: readonly CallEvent[]) =>
  events.flatMap(({ event, data }) => (event === 'machine.detected' ? [data?.result] : []));

describe('call with machine detection', () => {
  it('continues when a person answers, with audio from the first word on', async () => {
    await answeredBy({ audio: await person(), onMachine: 'hangup' }, async ({ agent, customer, callId }) => {
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
  });

  it('reports a machine and its beep, and continues', async () => {
    await answeredBy({ audio: await machine(), onMachine: 'continue' }, async ({ agent, callId }) => {
      const last = await platform.until(callId, 'machine.detected', ({ data }) => data?.result !== 'machine');
      expect(last.data?.result).toBe('beep');
      agent.hangup();
      const events = await platform.ended(callId);
      expect(found(events)).toEqual(['machine', 'beep']);
      expect(events.at(-1)).toMatchObject({
        event: 'call.completed',
        hangup_cause: 'NORMAL_CLEARING',
        detail: null,
      });
    });
  });

  it('hangs up when a machine answers, and reports why', async () => {
    const request = { audio: await machine(), onMachine: 'hangup', record: true } as const;
    await answeredBy(request, async ({ agent, customer, callId }) => {
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
  });

  it('hangs up when a fax machine answers', async () => {
    const samples = joined(silence(500), beep(1100, 500));
    await answeredBy({ audio: { kind: 'samples', samples }, onMachine: 'hangup' }, async ({ callId }) => {
      expect((await platform.until(callId, 'machine.detected')).data?.result).toBe('fax');
      const events = await platform.ended(callId);
      expect(found(events)).toEqual(['fax']);
      expect(events.at(-1)).toMatchObject({ event: 'call.completed', detail: 'a fax machine answered' });
    });
  });

  it('continues as unknown with a silent phone, and repeats for its reference', async () => {
    const silent = { audio: { kind: 'none' }, onMachine: 'hangup', reference_id: 'silent-phone' } as const;
    await answeredBy(silent, async ({ agent, callId, request }) => {
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
  });

  it('detects nothing unless requested', async () => {
    const { agent } = await platform.parties({ customer: { audio: await machine() } });
    const { call_id: callId } = await platform.place();
    await agent.untilReceived(({ packets }) => packets > 200);
    agent.hangup();
    expect(found(await platform.ended(callId))).toEqual([]);
  });
});
