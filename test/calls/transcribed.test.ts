import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall, PublicTranscript } from '../../actors/call-view.ts';
import { conversationOf } from '../../bin/demo/conversation.ts';
import { wordsUnderstood } from '../../bin/demo/likeness.ts';
import type { LegName } from '../../machines/events.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { untilTruthy } from '../eventually.ts';
import type { Softphone } from '../softphone/softphone.ts';
import { metricsOf } from './metrics-of.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

/** From a phone's answer to its first word. By then even a busy machine has connected it. */
const LEAD_MS = 5_000;
const THIRD = '+919833333333';

let platform: Platform;

beforeAll(async () => {
  // The engine that `npm ci` installs everywhere.
  platform = await startPlatform({ env: { STT_ENGINE: 'pocketsphinx' } });
});

afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

describe('transcribed call between speakers', () => {
  it('produces text and times for each leg during the call, and charges the spoken duration', async () => {
    const conversation = conversationOf(2);
    const speech = (leg: LegName) => ({
      audio: { kind: 'samples' as const, samples: conversation.trackOf(leg, { leadMs: LEAD_MS }) },
    });
    const { agent, customer } = await platform.parties({
      agent: { ...speech('agent'), codecs: ['PCMA'] },
      customer: speech('customer'),
    });
    const answeredAt = (phone: Softphone) => phone.until('answered').then(() => Date.now());
    const answering = { agent: answeredAt(agent), customer: answeredAt(customer) };
    const placed = await platform.place({ transcribe: true });
    expect(placed.transcribe_requested).toBe(true);
    const bridged = await platform.until(placed.call_id, 'call.bridged');
    for (const leg of ['agent', 'customer'] as const) {
      const said = conversation.sentences.find(({ speaker }) => speaker === leg)!;
      const final = await platform.until(placed.call_id, 'transcript.final', (event) => event.leg === leg);
      const { words, understood } = wordsUnderstood(said.text, final.transcript?.text ?? '');
      expect(understood, final.transcript?.text).toBeGreaterThanOrEqual(words / 2);
      const saidAtMs = (await answering[leg]) + LEAD_MS + said.endMs;
      const transcribedAtMs = Date.parse(bridged.at) + final.transcript!.end * 1_000;
      expect(Math.abs(transcribedAtMs - saidAtMs)).toBeLessThan(1_500);
    }
    agent.hangup();
    const events = await platform.ended(placed.call_id);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)?.event).toBe('call.completed');

    const transcriptNow = async () => {
      const path = `/dialer/click2call/${placed.call_id}/transcript`;
      return (await platform.ask<PublicTranscript>('GET', path)).body.data;
    };
    // A slow machine finishes after the call stopped waiting.
    await untilTruthy(async () => (await transcriptNow()).status !== 'in_progress', 'the transcript is over');
    const { value } = await metricsOf(platform);
    expect(value('tandem_stt_final_lag_seconds_count')).toBeGreaterThanOrEqual(2);
    expect(value('tandem_stt_final_lag_seconds_sum')).toBeGreaterThan(0);
    const transcript = await transcriptNow();
    expect(transcript).toMatchObject({ status: 'completed', error: null, language: 'en' });
    expect(new Set(transcript.segments.map(({ leg }) => leg))).toEqual(new Set(['agent', 'customer']));
    for (const { words, start, end } of transcript.segments) {
      expect(words.length).toBeGreaterThan(0);
      expect(words.every((word) => start - 0.5 <= word.start && word.end <= end + 0.5)).toBe(true);
    }
    const workspaceId = platform.tandem.workspaceId;
    const { rows } = await listUsage(platform.sql, { workspaceId, service: 'stt' }, { page: 1, limit: 20 });
    const spokenMinutes = transcript.segments.reduce((sum, { start, end }) => sum + end - start, 0) / 60;
    expect(rows.reduce((sum, { quantity }) => sum + Number(quantity), 0)).toBeCloseTo(spokenMinutes, 6);
  });
});

describe('third party of a transcribed call', () => {
  it('appears in the transcript with leg and role, and among the legs', async () => {
    const conversation = conversationOf(1);
    const samples = conversation.trackOf('agent', { leadMs: LEAD_MS });
    await platform.parties({ agent: { audio: { kind: 'silence' } }, customer: { audio: { kind: 'silence' } } });
    await platform.phone(THIRD, { audio: { kind: 'samples', samples } });
    // The recognisers of a busy machine may still be full with the first call.
    const callId = await untilTruthy(async () => {
      const placement = { agent_number: AGENT, customer_number: CUSTOMER, transcribe: true };
      const { status, body } = await platform.ask<{ call: PublicCall }>('POST', '/dialer/click2call', placement);
      return status === 201 && body.data.call.call_id;
    }, 'the call is placed');
    await platform.until(callId, 'call.bridged');
    const added = await platform.ask('POST', `/dialer/click2call/${callId}/legs`, {
      endpoint: { type: 'phone', number: THIRD },
    });
    expect(added.status).toBe(202);
    const final = await platform.until(callId, 'transcript.final');
    const legId = final.data?.leg_id;
    expect(final).toMatchObject({ leg: null, data: { role: 'party' } });
    const { words, understood } = wordsUnderstood(conversation.sentences[0]!.text, final.transcript?.text ?? '');
    expect(understood, final.transcript?.text).toBeGreaterThanOrEqual(words / 2);
    await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
    await platform.ended(callId);
    const { body } = await platform.ask<PublicTranscript>('GET', `/dialer/click2call/${callId}/transcript`);
    const { segments } = body.data;
    expect(segments).toContainEqual(expect.objectContaining({ leg: legId, role: 'party' }));
    expect((await platform.call(callId)).legs).toContainEqual(
      expect.objectContaining({ leg_id: legId, role: 'party', state: 'ended' }),
    );
  });
});
