import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveStt } from '../../actors/stt/live-stt.actor.ts';
import type { SttMessage, SttSettings } from '../../actors/stt/live-stt.ts';
import { TandemError } from '../../machines/errors.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import type { Refine } from '../../speech/refinement.ts';
import { walletOf } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { eventually } from '../eventually.ts';
import { NOW, seedWorkspace, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createFakeDeliverer, createTestClock, createTestLogger, quiet, sqlWithFaults } from './fakes.ts';
import { createFakeSpeech, SUMMARY } from './stt-fakes.ts';

const SETTINGS: SttSettings = {
  languages: ['en'],
  encoding: 'linear',
  sampleRateHz: 16_000,
  utteranceEndMs: 1_000,
  isContinuous: true,
  interimEveryMs: null,
  enhancement: 'off',
  diarize: false,
  minSpeakers: null,
  maxSpeakers: null,
  removeFillers: false,
};
const LINEAR_16K: AudioFormat = { encoding: 'linear16', sampleRateHz: 16_000, channels: 1 };
const MULAW_8K: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 };
const TALK = { general: [], text: null, terms: ['Tandem', 'SIP trunk'] };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('live transcription session', () => {
  it("opens recognition and a listener with the client's settings", async () => {
    const { session, recognition, listening, until } = await openSession();
    const settings = { ...SETTINGS, encoding: 'mulaw', sampleRateHz: 8_000, interimEveryMs: 300 } as const;
    session.send({ type: 'start', settings: { ...settings, diarize: true, maxSpeakers: 3 }, talk: TALK });
    await until('session_started');
    expect(recognition.stream.options).toMatchObject({
      streamId: session.id,
      mode: 'live',
      languages: ['en'],
      keywords: [
        { term: 'Tandem', weight: 1 },
        { term: 'SIP trunk', weight: 1 },
      ],
      hypothesisEveryMs: 300,
      diarization: { by: 'voice', minSpeakers: null, maxSpeakers: 3 },
    });
    expect(listening.session.options).toMatchObject({
      sessionId: session.id,
      format: MULAW_8K,
      utteranceEndMs: 1_000,
      enhancement: 'off',
    });
    expect(listening.session.options.utterances).toBe(recognition.stream.utterances);
  });

  it('warns of terms that the model ignores', async () => {
    for (const { boostsKeywords, talk, warnings } of [
      { boostsKeywords: false, talk: TALK, warnings: ['keywords_not_boosted'] },
      { boostsKeywords: false, talk: null, warnings: [] },
      { boostsKeywords: true, talk: TALK, warnings: [] },
    ]) {
      const { session, recognition, messages, until } = await openSession();
      recognition.boostsKeywords = boostsKeywords;
      session.send({ type: 'start', settings: SETTINGS, talk });
      await until('session_started');
      expect(messages).toMatchObject([{ warning_codes: warnings }]);
    }
  });

  it('logs details of an engine failure without sending them to the client', async () => {
    const { session, recognition, messages, logger } = await startedSession();
    const message = 'cannot open /srv/models/stt/secret-model/encoder.onnx';
    recognition.stream.emit({ type: 'recognition.failed', code: 'INTERNAL', message, retryAfterS: null });
    await session.ended;
    expect(messages).toContainEqual({
      type: 'error',
      code: 'INTERNAL',
      message: 'Something went wrong here. Connect again.',
    });
    expect(JSON.stringify(messages)).not.toContain('secret-model');
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ err: new Error(message) }) }),
    );
  });

  it('warns when a changed language selects a model that ignores the terms', async () => {
    const { session, recognition, messages, until } = await openSession();
    session.send({ type: 'start', settings: SETTINGS, talk: TALK });
    await until('session_started');
    recognition.stream.boostsKeywords = false;
    for (const count of [1, 2]) {
      session.send({ type: 'config', change: { languages: ['hi'] } });
      await until('config_updated', count);
    }
    recognition.stream.boostsKeywords = true;
    session.send({ type: 'config', change: { languages: ['en'] } });
    await until('config_updated', 3);
    expect(messages).toMatchObject([
      { type: 'session_started', warning_codes: [] },
      { type: 'config_updated', warning_codes: ['keywords_not_boosted'] },
      { type: 'config_updated', warning_codes: ['keywords_not_boosted'] },
      { type: 'config_updated', warning_codes: [] },
    ]);
  });

  it('rejects audio before its start, and accepts any mix of formats afterwards', async () => {
    const { session, listening, until } = await openSession();
    expect(session.audio(new Uint8Array([1, 2]), LINEAR_16K)).toBe(false);
    session.send({ type: 'start', settings: SETTINGS, talk: null });
    await until('session_started');
    expect(session.audio(new Uint8Array([3, 4]), LINEAR_16K)).toBe(true);
    session.audio(new Uint8Array([5]), MULAW_8K);
    session.audio(new Uint8Array([6]), MULAW_8K);
    expect([...listening.session.bytes]).toEqual([3, 4, 5, 6]);
    expect(listening.session.changes).toEqual([{ format: MULAW_8K }]);
  });

  it('ends the open utterance at finalise, between the audio before and after', async () => {
    const { session, listening, messages, until } = await openSession();
    session.send({ type: 'finalize' });
    expect(messages.at(-1)).toMatchObject({ type: 'error', code: 'invalid_state' });
    session.send({ type: 'start', settings: SETTINGS, talk: null });
    await until('session_started');
    session.audio(new Uint8Array([1, 2]), LINEAR_16K);
    session.send({ type: 'config', change: { utteranceEndMs: 2_000 } });
    session.send({ type: 'finalize' });
    session.audio(new Uint8Array([3, 4]), LINEAR_16K);
    session.send({ type: 'finalize' });
    expect(listening.session.endedAt).toEqual([2, 4]);
    session.send({ type: 'stop' });
    session.send({ type: 'finalize' });
    expect(listening.session.endedAt).toEqual([2, 4]);
  });

  it('includes unprocessed audio in lag_ms', async () => {
    const { session, recognition, listening, messages, until } = await startedSession();
    const finals = () => messages.flatMap((message) => ('lag_ms' in message ? [message.lag_ms] : []));
    session.audio(new Uint8Array(3 * 32_000), LINEAR_16K);
    recognition.stream.recognise(0, 'hello');
    await until('transcription');
    listening.session.options.onAnalysed?.(3_000);
    recognition.stream.recognise(1, 'again');
    await until('transcription', 2);
    expect(finals()).toEqual([2_600, 100]);
  });

  it('answers each configuration change once, and keeps the old one when no engine supports the new', async () => {
    const { session, recognition, listening, messages, until } = await startedSession();
    recognition.onSettings = ({ languages }) => {
      if (languages?.includes('hi')) throw new TandemError('unsupported_language', 'No engine knows Hindi (hi).');
    };
    session.send({ type: 'config', change: { languages: ['hi'], utteranceEndMs: 3_000 } });
    session.send({ type: 'config', change: { enhancement: 'light', diarize: true } });
    session.send({ type: 'config', change: { languages: ['ja'] } });
    session.send({ type: 'config', change: { languages: null, utteranceEndMs: 2_000 } });
    await until('config_updated', 2);
    expect(messages.slice(1)).toMatchObject([
      { type: 'error', code: 'unsupported_language', message: expect.stringContaining('Japanese (ja)') },
      { type: 'error', code: 'unsupported_language', message: 'No engine knows Hindi (hi).' },
      { type: 'config_updated', config: { languages: ['en'], audio_enhancement: 'light', utterance_end_ms: 1_000 } },
      { type: 'config_updated', config: { languages: null, audio_enhancement: 'light', utterance_end_ms: 2_000 } },
    ]);
    expect(listening.session.changes).toEqual([{ enhancement: 'light' }, { utteranceEndMs: 2_000 }]);
    expect(recognition.stream.changes).toEqual([
      { diarization: { by: 'voice', minSpeakers: null, maxSpeakers: null } },
      { languages: null },
    ]);
  });

  it('rejects max_speakers below min_speakers, and keeps the old values', async () => {
    const { session, recognition, messages, until } = await openSession();
    const settings = { ...SETTINGS, diarize: true, minSpeakers: 3, maxSpeakers: 2 };
    session.send({ type: 'start', settings, talk: null });
    await until('error');
    session.send({ type: 'start', settings: { ...settings, maxSpeakers: 4 }, talk: null });
    await until('session_started');
    session.send({ type: 'config', change: { maxSpeakers: 2 } });
    await until('error', 2);
    session.send({ type: 'config', change: { maxSpeakers: 3 } });
    await until('config_updated');
    expect(messages.at(-1)).toMatchObject({ config: { min_speakers: 3, max_speakers: 3 } });
    expect(recognition.stream.changes).toEqual([{ diarization: { by: 'voice', minSpeakers: 3, maxSpeakers: 3 } }]);
  });

  it('ignores speaker counts without diarisation', async () => {
    const { session, recognition, messages, until } = await openSession();
    session.send({ type: 'start', settings: { ...SETTINGS, diarize: true, minSpeakers: 2 }, talk: null });
    await until('session_started');
    session.send({ type: 'config', change: { diarize: false } });
    session.send({ type: 'config', change: { maxSpeakers: 1 } });
    await until('config_updated', 2);
    expect(messages.at(-1)).toMatchObject({ config: { diarize: false, min_speakers: null, max_speakers: null } });
    expect(recognition.stream.changes).toEqual([{ diarization: null }, { diarization: null }]);
  });

  it('answers a configuration change before a stop that overtakes it', async () => {
    const { session, messages } = await startedSession();
    session.send({ type: 'config', change: { enhancement: 'light' } });
    session.send({ type: 'stop' });
    await session.ended;
    expect(messages.map(({ type }) => type)).toContain('config_updated');
  });

  it('rejects Arabic dialects, unknown languages and file-only languages', async () => {
    const { session, messages } = await openSession();
    for (const language of ['ar-eg', 'xx', 'en-us', 'zh', 'fa']) {
      session.send({ type: 'start', settings: { ...SETTINGS, languages: ['en', language] }, talk: null });
      expect(messages.at(-1)).toMatchObject({ type: 'error', code: 'unsupported_language' });
    }
    expect(messages).toHaveLength(5);
  });

  it('charges each final transcript by its duration, once and before sending it', async () => {
    const { session, recognition, until, sql, workspaceId, messages, balance } = await startedSession();
    recognition.stream.recognise(1, 'go forward ten meters', { durationMs: 2_500.4 });
    await until('transcription');
    // At 0.006 USD per minute.
    const priceNano = 250_100n;
    expect(await balance()).toBe(10n * USD - priceNano);
    recognition.stream.emit({
      type: 'utterance.unusable',
      utteranceId: 2,
      summary: SUMMARY,
      reason: 'low_snr_dropped',
      rejectedText: null,
      lagMs: 1,
    });
    session.send({ type: 'stop' });
    await session.ended;
    expect(await balance()).toBe(10n * USD - priceNano);
    expect(messages.find(({ type }) => type === 'billing_summary')).toMatchObject({
      total_duration_seconds: 2.501,
      amount: 0.0002501,
    });
    const { rows } = await listUsage(sql, { workspaceId }, { page: 1, limit: 10 });
    expect(rows).toMatchObject([
      { service: 'stt', operation: 'live_transcription', resourceId: session.id, unit: 'minute' },
    ]);
  });

  it("charges the diarisation surcharge at the prices of the session's start", async () => {
    const { recognition, until, sql, workspaceId, balance } = await startedSession({ diarize: true });
    recognition.stream.recognise(1, 'one', { durationMs: 60_000 });
    await until('transcription');
    expect(await balance()).toBe(10n * USD - 7_800_000n);
    await setPrice(sql, { scope: { workspaceId }, item: 'stt', value: 1_000_000_000n, now: NOW });
    recognition.stream.recognise(2, 'two', { durationMs: 60_000 });
    await until('transcription', 2);
    expect(await balance()).toBe(10n * USD - 15_600_000n);
  });

  it('ends when the wallet does not cover a final transcript, without sending it', async () => {
    const { session, recognition, messages, closed, until, balance } = await startedSession(
      {},
      { balanceNano: 300_000n },
    );
    recognition.stream.recognise(1, 'this is covered');
    await until('transcription');
    recognition.stream.recognise(2, 'this is not');
    await session.ended;
    expect(await balance()).toBe(100_000n);
    expect(messages.map(({ type }) => type)).toEqual([
      'session_started',
      'transcription',
      'error',
      'billing_summary',
      'connection_closed',
    ]);
    expect(messages[2]).toMatchObject({
      error: { code: 'INSUFFICIENT_CREDITS', details: { required: 0.0002, available: 0.0001, shortfall: 0.0001 } },
    });
    expect(closed()).toEqual({ code: 1008, reason: 'INSUFFICIENT_CREDITS' });
  });

  it('charges nothing for an abandoned transcript, even if storage returns later', async () => {
    const isBack = Promise.withResolvers<void>();
    const attempts: Promise<unknown>[] = [];
    const { session, recognition, clock, messages, closed, balance } = await startedSession(
      {},
      {
        begin: (run) => {
          const attempt = isBack.promise.then(run);
          attempts.push(attempt);
          return attempt;
        },
      },
    );
    recognition.stream.recognise(1, 'go forward');
    await eventually(() => {
      clock.advance(1_000);
      expect(closed()).not.toBeNull();
    });
    await session.ended;
    isBack.resolve();
    await Promise.allSettled(attempts);
    expect(messages.map(({ type }) => type)).toEqual([
      'session_started',
      'error',
      'billing_summary',
      'connection_closed',
    ]);
    expect(await balance()).toBe(10n * USD);
  });

  it('charges once when the response of storage is lost', async () => {
    let isLost = false;
    const { recognition, until, clock, balance } = await startedSession(
      {},
      {
        begin: async (run) => {
          const result = await run();
          if (isLost) return result;
          isLost = true;
          throw new Error('connection lost');
        },
      },
    );
    recognition.stream.recognise(1, 'go forward');
    await eventually(() => expect(isLost).toBe(true));
    await eventually(() => expect(clock.waiting()).toContain(500));
    clock.advance(500);
    await until('transcription');
    expect(await balance()).toBe(10n * USD - 200_000n);
  });
});

describe('live transcription with context', () => {
  it('gets refined by the model, without fillers on request', async () => {
    const asked: string[] = [];
    const refine: Refine = async ({ text }) => {
      asked.push(text);
      return 'Go forward, ten metres.';
    };
    const { recognition, until, transcriptions } = await startedSession(
      { removeFillers: true },
      { refine, talk: TALK },
    );
    recognition.stream.recognise(1, 'um go forward ten meters');
    await until('transcription', 2);
    expect(asked).toEqual(['go forward ten meters']);
    expect(transcriptions()).toMatchObject([
      { text: 'um go forward ten meters', speech_final: false },
      { text: 'Go forward, ten metres.', speech_final: true, llm_applied: true, llm_reason: null, llm_latency_ms: 0 },
    ]);
    expect(transcriptions()[1]?.words.map(({ word }) => word)).toEqual(['go', 'forward', 'ten', 'meters']);
  });

  it('repeats the original when the model drops words, is late or is missing', async () => {
    const models: [string, Refine | null][] = [
      ['dropped_too_many_words', async () => 'Ten.'],
      ['llm_timeout', () => new Promise(() => {})],
      ['llm_not_configured', null],
    ];
    for (const [llm_reason, refine] of models) {
      const { recognition, until, clock, transcriptions } = await startedSession({}, { refine, talk: TALK });
      recognition.stream.recognise(1, 'go forward ten meters');
      await until('transcription');
      clock.advance(700);
      await until('transcription', 2);
      const canonical = { text: 'go forward ten meters', speech_final: true, llm_applied: false, llm_reason };
      expect(transcriptions()[1]).toMatchObject(canonical);
    }
  });

  it('keeps an utterance that is only a filler', async () => {
    const { recognition, until, transcriptions } = await startedSession({ removeFillers: true }, { talk: TALK });
    recognition.stream.recognise(1, 'um');
    await until('transcription', 2);
    expect(transcriptions()[1]).toMatchObject({ text: 'um' });
  });
});

describe('end of a live transcription', () => {
  it('follows all messages, and sends the transcript to webhooks', async () => {
    const { session, recognition, listening, messages, closed, deliveries } = await startedSession(
      {},
      { webhook: true },
    );
    session.audio(new Uint8Array(64_000), LINEAR_16K);
    session.send({ type: 'stop' });
    session.audio(new Uint8Array(64_000), LINEAR_16K);
    recognition.stream.recognise(1, 'go forward');
    await session.ended;
    expect(listening.session).toMatchObject({ isFinished: true, isClosed: true });
    expect(listening.session.bytes).toHaveLength(64_000);
    expect(messages.map(({ type }) => type)).toEqual([
      'session_started',
      'transcription',
      'billing_summary',
      'session_stopped',
      'connection_closed',
    ]);
    expect(messages[2]).toMatchObject({ client_estimated_seconds: 2 });
    expect(closed()).toEqual({ code: 1000, reason: 'session stopped' });
    expect(await deliveries()).toMatchObject([
      {
        event: 'stt.completed',
        data: { id: session.id, text: 'go forward', language: 'en', duration: 2, snr_db: 21, source: 'websocket' },
      },
    ]);
  });

  it('sends the failure to webhooks', async () => {
    const { session, listening, closed, deliveries, until } = await startedSession({}, { webhook: true });
    listening.session.options.onEvent({ type: 'listening.lost', detail: 'the worker died' });
    await until('error');
    await session.ended;
    expect(closed()).toMatchObject({ code: 1011 });
    const data = { id: session.id, error: 'STT_UPSTREAM_UNAVAILABLE' };
    expect(await deliveries()).toMatchObject([{ event: 'stt.failed', data }]);
  });

  it('reports received audio even when storage fails or hangs', async () => {
    const storages = { broken: () => Promise.reject(new Error('gone')), silent: () => new Promise<never>(() => {}) };
    for (const [storage, begin] of Object.entries(storages)) {
      const { session, listening, clock, messages, until } = await startedSession({}, { webhook: true, begin });
      session.audio(new Uint8Array(64_000), LINEAR_16K);
      listening.session.options.onEvent({ type: 'listening.lost', detail: 'the worker died' });
      await until('error');
      if (storage === 'silent') clock.advance(4_000);
      await session.ended;
      expect(messages.find(({ type }) => type === 'billing_summary')).toMatchObject({ client_estimated_seconds: 2 });
    }
  });

  it('comes with 1013 when audio arrives far faster than real time', async () => {
    const { session, clock, messages, closed } = await startedSession();
    const second = () => session.audio(new Uint8Array(32_000), LINEAR_16K);
    for (let sent = 0; sent < 60; sent += 1) second();
    expect(messages).toHaveLength(1);
    clock.advance(1_000);
    second();
    expect(messages).toHaveLength(1);
    second();
    expect(messages.at(-1)).toMatchObject({ type: 'error', code: 'overloaded' });
    await session.ended;
    expect(closed()).toMatchObject({ code: 1013 });
  });

  it('leaves nothing behind, whenever the client disconnects', async () => {
    const wait = Promise.withResolvers<void>();
    const steps: ((opened: Awaited<ReturnType<typeof openSession>>) => Promise<unknown>)[] = [
      async () => {},
      async ({ session, recognition }) => {
        recognition.onSettings = () => wait.promise;
        session.send({ type: 'start', settings: SETTINGS, talk: null });
      },
      async ({ session, listening }) => {
        listening.onOpen = () => wait.promise;
        session.send({ type: 'start', settings: SETTINGS, talk: null });
        await quiet();
      },
      async ({ session, until }) => {
        session.send({ type: 'start', settings: SETTINGS, talk: null });
        await until('session_started');
      },
      async ({ session, listening, until }) => {
        listening.onFinish = () => {};
        session.send({ type: 'start', settings: SETTINGS, talk: null });
        await until('session_started');
        session.send({ type: 'stop' });
      },
    ];
    for (const step of steps) {
      const opened = await openSession();
      await step(opened);
      opened.session.end('disconnected');
      await opened.session.ended;
      wait.resolve();
      await quiet();
      expect(opened.stt.count()).toBe(0);
      expect(opened.recognition.live).toEqual([]);
      expect(opened.listening.live).toEqual([]);
      expect(opened.clock.waiting()).toEqual([]);
      opened.session.audio(new Uint8Array(2), LINEAR_16K);
      opened.session.send({ type: 'stop' });
      opened.session.end('disconnected');
    }
  });

  it('reaches all clients on shutdown, and later ones at once', async () => {
    const { stt, session, closed, messages, open } = await startedSession();
    await stt.close();
    await session.ended;
    expect(messages[1]).toMatchObject({ type: 'error', code: 'SHUTTING_DOWN' });
    expect(closed()).toMatchObject({ code: 1012 });
    const late = open();
    await late.session.ended;
    expect(late.closed()).toMatchObject({ code: 1012 });
  });
});

interface SessionOptions {
  balanceNano?: bigint;
  refine?: Refine | null;
  webhook?: boolean;
  begin?: (run: () => Promise<unknown>) => Promise<unknown>;
  talk?: typeof TALK | null;
}

async function startedSession(settings: Partial<SttSettings> = {}, options: SessionOptions = {}) {
  const opened = await openSession(options);
  opened.session.send({ type: 'start', settings: { ...SETTINGS, ...settings }, talk: options.talk ?? null });
  await opened.until('session_started');
  return opened;
}

async function openSession({ balanceNano = 10n * USD, refine = null, webhook = false, begin }: SessionOptions = {}) {
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql, { balanceNano });
  const workspaceId = workspace.id;
  if (webhook) {
    await createWebhook(sql, {
      id: randomUUID(),
      workspaceId,
      url: 'https://hooks.example.com/stt',
      events: ['stt.completed', 'stt.failed'],
      secretEncrypted: Buffer.alloc(8),
      now: NOW,
    });
  }
  const speech = createFakeSpeech();
  const clock = createTestClock();
  const deliverer = createFakeDeliverer();
  const logger = createTestLogger();
  const stt = createLiveStt({
    ...speech,
    sql: begin ? sqlWithFaults(sql, begin) : sql,
    refine,
    deliverer,
    clock,
    logger,
  });
  const open = () => {
    const messages: SttMessage[] = [];
    let closed: { code: number; reason: string } | null = null;
    const session = stt.open({
      workspaceId,
      userId: user.id,
      apiKeyId: null,
      mayRefine: true,
      onMessage: (message) => void messages.push(message),
      onClosed: (close) => {
        closed = close;
      },
    });
    return { session, messages, closed: () => closed };
  };
  const { session, messages, closed } = open();
  return {
    ...speech,
    stt,
    clock,
    logger,
    sql,
    workspaceId,
    open,
    session,
    messages,
    closed,
    transcriptions: () => messages.filter((message) => message.type === 'transcription'),
    until: (type: SttMessage['type'], count = 1) =>
      eventually(() => expect(messages.filter((message) => message.type === type)).toHaveLength(count)),
    balance: async () => (await walletOf(sql, workspaceId)).balanceNano,
    async deliveries() {
      const rows = await sql<{ id: string; body: string }[]>`
        select id, body from deliveries where workspace_id = ${workspaceId}`;
      expect(deliverer.enqueued).toEqual(rows.map(({ id }) => id));
      return rows.map(({ body }) => JSON.parse(body));
    },
  };
}
