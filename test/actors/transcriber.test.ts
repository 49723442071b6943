import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createTranscriber, type TranscriberOptions } from '../../actors/stt/transcriber.actor.ts';
import type { TranscribeRequest } from '../../actors/stt/transcriber.ts';
import { TandemError } from '../../machines/errors.ts';
import type { RecognisedWord, RecognitionEvent } from '../../machines/utterances.ts';
import type { FileAnalysis, ListenToFileOptions } from '../../media/listening-plane.ts';
import type { Tx } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { createLimitsInProcess } from '../../storage/limits/limits.ts';
import { setPrice } from '../../storage/price-book.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { eventually } from '../eventually.ts';
import { wavFile } from '../media/audio-file/wav-files.ts';
import { NOW, seedWorkspace, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createFakeDeliverer, createTestClock, createTestLogger } from './fakes.ts';
import { FakeRecognition, SUMMARY } from './stt-fakes.ts';

let database: TestDatabase;
let tempDir: string;
beforeAll(async () => {
  database = await createTestDatabase();
  tempDir = await mkdtemp(join(tmpdir(), 'tandem-transcriber-'));
});
afterAll(async () => {
  await database.drop();
  await rm(tempDir, { recursive: true });
});

/** 1.5 s. */
const AUDIO = wavFile(Int16Array.from({ length: 24_000 }, (_, i) => Math.round(8_000 * Math.sin(i / 5))));
const ANALYSIS: FileAnalysis = { durationMs: 1_500, speechMs: 1_200, snrDb: 21.26, utterances: 1, isSilent: false };

describe('transcription of a file', () => {
  it('opens, recognises and charges the file, notifies webhooks and leaves nothing behind', async () => {
    const { transcribe, onListen, recognition, usage, webhooks, wallet, deliverer } = await setUp({ webhook: true });
    onListen(({ emit }) => emit(recognised('go forward ten meters')));
    const { transcript, charge } = await transcribe({ languages: ['en'] });
    expect(transcript).toMatchObject({
      text: 'go forward ten meters',
      language: 'en',
      language_source: 'requested',
      duration: 1.5,
      snr_db: 21.3,
      warning_codes: [],
      words: [],
      speakers: [],
      llm_applied: false,
      llm_reason: null,
      model: 'fake/en',
      cost_usd: 0.00015,
    });
    expect(transcript.segments).toEqual([
      { id: 0, chunk_idx: 0, start: 1, end: 2.5, text: 'go forward ten meters', language: 'en' },
    ]);
    expect(recognition.stream.options).toMatchObject({
      mode: 'batch',
      languages: ['en'],
      hypothesisEveryMs: null,
      diarization: null,
    });
    expect(charge).toMatchObject({ chargedNano: 150_000n, balanceAfterNano: 10n * USD - 150_000n });
    expect(await wallet()).toBe(10n * USD - 150_000n);
    expect(await usage()).toMatchObject([
      { id: charge?.entryId, operation: 'transcription', resourceId: 'request-1', quantity: 0.025, unit: 'minute' },
    ]);
    const [payload] = await webhooks();
    expect(payload).toEqual({
      event: 'stt.completed',
      data: {
        id: 'request-1',
        text: 'go forward ten meters',
        language: 'en',
        duration: 1.5,
        snr_db: 21.3,
        source: 'rest',
      },
    });
    expect(deliverer.enqueued).toHaveLength(1);
    expect(recognition.live).toEqual([]);
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('contains word times and confidence only on request', async () => {
    const { transcribe, onListen } = await setUp();
    onListen(({ emit }) => emit(recognised('ten')));
    const word = { word: 'ten', start: 1, end: 1.3 };
    expect((await transcribe({ includeConfidence: true })).transcript.words).toEqual([]);
    expect((await transcribe({ includeWords: true })).transcript.words).toEqual([word]);
    const both = await transcribe({ includeWords: true, includeConfidence: true });
    expect(both.transcript.words).toEqual([{ ...word, confidence: 0.9 }]);
  });

  it('reports a detected language unless one was given, and chunking when the file was cut', async () => {
    const { transcribe, onListen } = await setUp();
    onListen(({ emit }) => emit(recognised('ten')));
    expect((await transcribe()).transcript.language_source).toBe('detected');
    expect((await transcribe({ languages: ['en', 'hi'] })).transcript.language_source).toBe('detected');
    onListen(({ emit }) => {
      emit(recognised('and three', { utteranceId: 1, startMs: 31_000, language: 'hi' }));
      emit(recognised('one two', { utteranceId: 0, startMs: 1_000 }));
    });
    const { transcript } = await transcribe({ languages: ['en', 'hi'] });
    expect(transcript).toMatchObject({
      text: 'one two and three',
      language: 'hi',
      language_source: 'long_audio_chunked',
    });
    expect(transcript.segments.map(({ id, chunk_idx, language }) => [id, chunk_idx, language])).toEqual([
      [0, 0, 'en'],
      [1, 1, 'hi'],
    ]);
  });

  it.each([
    ['今天天气很好。', '我们走吧', '今天天气很好。我们走吧'],
    ['はい、コーヒー', '𠮷野家です。', 'はい、コーヒー𠮷野家です。'],
    ['我用', 'Linux', '我用 Linux'],
    ['สวัสดีครับ', 'ไปกันเถอะ', 'สวัสดีครับ ไปกันเถอะ'],
    ['안녕하세요.', '갑시다.', '안녕하세요. 갑시다.'],
  ])('joins the chunks %s and %s with a space only if their language has one there', async (first, second, text) => {
    const { transcribe, onListen } = await setUp();
    onListen(({ emit }) => {
      emit(recognised(first, { utteranceId: 0, language: 'xx' }));
      emit(recognised(second, { utteranceId: 1, startMs: 31_000, language: 'xx' }));
    });
    expect((await transcribe()).transcript.text).toBe(text);
  });

  it('starts no segment within a word that the server reports in parts', async () => {
    const { transcribe, onListen } = await setUp();
    const words = [
      ...[spoken('I', 1_000, 'speaker_1'), spoken('don', 1_300, 'speaker_1'), spoken("'t", 1_600, 'speaker_2')],
      ...[spoken('know', 1_900, 'speaker_2'), spoken('.', 4_000, 'speaker_2'), spoken('Why', 5_000, 'speaker_1')],
    ];
    onListen(({ emit }) => emit(recognised("I don't know. Why", { words })));
    const { transcript } = await transcribe({ diarize: true });
    expect(transcript.segments.map(({ text }) => text)).toEqual(["I don't", 'know.', 'Why']);
    expect(transcript.text).toBe("I don't know. Why");
  });

  it('starts a segment with each speaker in a text without spaces', async () => {
    const { transcribe, onListen } = await setUp();
    const words = [
      ...[spoken('你', 1_000, 'speaker_1'), spoken('好？', 1_300, 'speaker_1')],
      ...[spoken('很', 1_700, 'speaker_2'), spoken('好。', 2_000, 'speaker_2')],
    ];
    onListen(({ emit }) => emit(recognised('你好？很好。', { language: 'zh', words })));
    const { transcript } = await transcribe({ diarize: true });
    expect(transcript.segments.map(({ text, speaker }) => [text, speaker])).toEqual([
      ['你好？', 'speaker_1'],
      ['很好。', 'speaker_2'],
    ]);
    expect(transcript.speakers).toEqual(['speaker_1', 'speaker_2']);
    expect(transcript.text).toBe('你好？很好。');
  });

  it('starts a segment with each speaker and after each pause', async () => {
    const { transcribe, onListen, recognition } = await setUp();
    const words = [
      spoken('yes', 1_000, 'speaker_1'),
      spoken('please', 1_400, 'speaker_1'),
      spoken('which', 1_700, 'speaker_2'),
      spoken('one', 4_000, 'speaker_2'),
    ];
    onListen(({ emit }) => emit(recognised('yes please which one', { words })));
    const { transcript, charge } = await transcribe({ diarize: true, minSpeakers: 2, maxSpeakers: 3 });
    expect(transcript.segments.map(({ text, speaker }) => [text, speaker])).toEqual([
      ['yes please', 'speaker_1'],
      ['which', 'speaker_2'],
      ['one', 'speaker_2'],
    ]);
    expect(transcript.speakers).toEqual(['speaker_1', 'speaker_2']);
    expect(recognition.stream.options.diarization).toEqual({ by: 'voice', minSpeakers: 2, maxSpeakers: 3 });
    // 30 per cent more.
    expect(charge?.chargedNano).toBe(195_000n);
  });

  it('separates two parties by channel', async () => {
    const { transcribe, onListen, listenedFiles, recognition } = await setUp();
    onListen(({ emit }) => {
      emit(recognised('hello', { utteranceId: 0, channel: 0, startMs: 0 }));
      emit(recognised('yes', { utteranceId: 1, channel: 1, startMs: 500 }));
    });
    const left = Int16Array.from({ length: 24_000 }, (_, i) => (i < 12_000 ? 8_000 * Math.sin(i / 5) : 0));
    const right = left.toReversed();
    const { transcript } = await transcribe({ diarize: true }, wavFile(left, right));
    expect(listenedFiles.at(-1)?.channels).toBe('separate');
    expect(recognition.stream.options.diarization?.by).toBe('channel');
    // One chunk per channel counts as uncut.
    expect(transcript.language_source).toBe('detected');
    await transcribe({ diarize: false }, wavFile(left, right));
    expect(listenedFiles.at(-1)?.channels).toBe('mixed');
    await transcribe({ diarize: true }, wavFile(left, left));
    expect(listenedFiles.at(-1)?.channels).toBe('mixed');
  });

  it('writes each language in its script on request', async () => {
    const { transcribe, onListen } = await setUp();
    const text = 'मुझे ऑर्डर चाहिए';
    onListen(({ emit }) =>
      emit(recognised(text, { words: text.split(' ').map((word, i) => spoken(word, 1_000 + i * 400)) })),
    );
    expect((await transcribe({ languages: ['hi', 'en'] })).transcript.text).toBe(text);
    const corrected = await transcribe({ languages: ['hi', 'en'], scriptCorrection: true, includeWords: true });
    expect(corrected.transcript.text).toBe('मुझे order चाहिए');
    expect(corrected.transcript.words[1]?.word).toBe('order');
  });
});

describe('transcription without text', () => {
  it.each([
    { reason: 'low_snr_dropped', warning: 'low_snr_dropped', isCharged: false },
    { reason: 'speech_end_no_result', warning: 'no_speech_detected', isCharged: true },
    { reason: 'hallucination_rejected', warning: 'hallucination_rejected', isCharged: true },
  ] as const)(
    'returns the warning $warning, and charges by length: $isCharged',
    async ({ reason, warning, isCharged }) => {
      const { transcribe, onListen, wallet, webhooks } = await setUp({ webhook: true });
      onListen(({ emit }) => emit(unusable(reason)));
      const { transcript, charge } = await transcribe();
      expect(transcript).toMatchObject({ text: '', language: null, warning_codes: [warning], segments: [] });
      expect(transcript.cost_usd > 0).toBe(isCharged);
      expect(await wallet()).toBe(10n * USD - (charge?.chargedNano ?? 0n));
      expect((charge?.chargedNano ?? 0n) > 0n).toBe(isCharged);
      expect(await webhooks()).toMatchObject([{ event: 'stt.completed', data: { text: '', language: 'und' } }]);
    },
  );

  it('reports a partially dropped file by a separate warning', async () => {
    const { transcribe, onListen } = await setUp();
    onListen(({ emit }) => {
      emit(recognised('ten'));
      emit(unusable('low_snr_dropped', 1));
    });
    expect((await transcribe()).transcript).toMatchObject({ text: 'ten', warning_codes: ['low_snr_partial'] });
  });
});

describe('refinement of a transcript', () => {
  it('corrects the text when a context is given, with the keywords as terms', async () => {
    const refine = vi.fn(async () => 'Go forward, ten metres.');
    const { transcribe, onListen, webhooks } = await setUp({ refine, webhook: true });
    onListen(({ emit }) => emit(recognised('go forward ten metres')));
    const { transcript } = await transcribe({ context: 'A robot.', keywords: [{ term: 'metres', weight: 2 }] });
    expect(transcript).toMatchObject({ text: 'Go forward, ten metres.', llm_applied: true, llm_reason: null });
    expect(refine).toHaveBeenCalledWith(
      expect.objectContaining({ context: { general: [], text: 'A robot.', terms: ['metres'] } }),
    );
    expect(await webhooks()).toMatchObject([{ data: { text: 'Go forward, ten metres.' } }]);
  });

  it('keeps the original when too little of it remains or no model is configured', async () => {
    const lossy = await setUp({ refine: async () => 'Nothing of that.' });
    lossy.onListen(({ emit }) => emit(recognised('go forward ten metres')));
    expect((await lossy.transcribe({ context: 'x' })).transcript).toMatchObject({
      text: 'go forward ten metres',
      llm_applied: false,
      llm_reason: 'dropped_too_many_words',
    });
    const without = await setUp();
    without.onListen(({ emit }) => emit(recognised('ten')));
    expect((await without.transcribe({ context: 'x' })).transcript.llm_reason).toBe('llm_not_configured');
  });

  it('warns of keywords that the model ignores', async () => {
    const { transcribe, onListen, recognition } = await setUp();
    onListen(({ emit }) => emit(recognised('ten')));
    const warningsFor = async (weight: number) =>
      (await transcribe({ keywords: [{ term: 'ten', weight }] })).transcript.warning_codes;
    expect(await warningsFor(1)).toEqual([]);
    recognition.boostsKeywords = false;
    expect(await warningsFor(1)).toEqual(['keywords_not_boosted']);
    expect(await warningsFor(0)).toEqual([]);
    expect((await transcribe()).transcript.warning_codes).toEqual([]);
  });

  it('drops the context with a warning on the free plan', async () => {
    const refine = vi.fn(async () => 'x');
    const { transcribe, onListen } = await setUp({ refine });
    onListen(({ emit }) => emit(recognised('ten')));
    expect((await transcribe({ context: 'x', plan: 'free' })).transcript).toMatchObject({
      text: 'ten',
      warning_codes: ['llm_refinement_not_in_plan'],
      llm_reason: 'llm_refinement_not_in_plan',
    });
    expect(refine).not.toHaveBeenCalled();
  });
});

describe('charge of a transcription', () => {
  it('fails with ZERO_BALANCE before reading the file, unless transcription is free', async () => {
    const { transcribe, onListen, listenedFiles, workspaceId, webhooks } = await setUp({
      balanceNano: 0n,
      webhook: true,
    });
    onListen(({ emit }) => emit(recognised('ten')));
    await expect(transcribe({}, Buffer.from('no audio'))).rejects.toMatchObject({ code: 'ZERO_BALANCE' });
    expect(listenedFiles).toEqual([]);
    expect(await webhooks()).toEqual([]);
    await setPrice(database.sql, { scope: { workspaceId }, item: 'stt', value: 0n, now: NOW });
    expect((await transcribe()).transcript.cost_usd).toBe(0);
  });

  it("fails before recognition when the wallet does not cover the file's length", async () => {
    const { transcribe, listenedFiles } = await setUp({ balanceNano: 100_000n });
    await expect(transcribe()).rejects.toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
      details: { required: 0.00015, available: 0.0001, shortfall: 0.00005 },
    });
    expect(listenedFiles).toEqual([]);
  });

  it('stands, with the transcript and one event, when the response to its commit is lost', async () => {
    const afterCommit = vi.fn(() => {
      if (afterCommit.mock.calls.length === 1) throw new Error('connection lost');
    });
    const { transcribe, onListen, wallet, webhooks } = await setUp({ webhook: true, afterCommit });
    onListen(({ emit }) => emit(recognised('ten')));
    const { transcript, charge } = await transcribe();
    expect(afterCommit).toHaveBeenCalled();
    expect([transcript.text, charge?.chargedNano]).toEqual(['ten', 150_000n]);
    expect(await wallet()).toBe(10n * USD - 150_000n);
    expect(await webhooks()).toMatchObject([{ event: 'stt.completed' }]);
  });

  it('fails without a transcript when the wallet was emptied meanwhile', async () => {
    const { transcribe, onListen, workspaceId, webhooks } = await setUp({ webhook: true });
    onListen(async ({ emit }) => {
      await setPrice(database.sql, { scope: { workspaceId }, item: 'stt', value: 1_000n * USD, now: NOW });
      emit(recognised('ten'));
    });
    await expect(transcribe()).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(await webhooks()).toMatchObject([{ event: 'stt.failed', data: { error: 'INSUFFICIENT_CREDITS' } }]);
  });
});

describe('failed transcription', () => {
  it.each<[string, RecognitionEvent, object]>([
    ['a busy engine', failed('STT_UPSTREAM_RATE_LIMIT', 17), { status: 429, retryAfterS: 17 }],
    ['an unreachable engine', failed('STT_UPSTREAM_UNAVAILABLE', null), { status: 503 }],
    ['an unsupported language', failed('unsupported_language', null), { status: 400 }],
    ['a crashed engine', failed('crashed', null), { code: 'INTERNAL', message: 'Speech recognition failed.' }],
  ])('costs nothing and notifies webhooks: %s', async (_what, event, refusal) => {
    const { transcribe, onListen, wallet, webhooks } = await setUp({ webhook: true });
    onListen(({ emit }) => emit(event));
    await expect(transcribe()).rejects.toMatchObject(refusal);
    expect(await wallet()).toBe(10n * USD);
    expect(await webhooks()).toMatchObject([{ event: 'stt.failed', data: { id: 'request-1' } }]);
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('reports unreadable audio as a client error and a lost listener as internal', async () => {
    const { transcribe, onListen, webhooks, recognition } = await setUp({ webhook: true });
    await expect(transcribe({}, Buffer.from('no audio'))).rejects.toMatchObject({ code: 'AUDIO_NOT_READABLE' });
    onListen(() => {
      throw new TandemError('INTERNAL', 'The listening worker ended.');
    });
    await expect(transcribe()).rejects.toMatchObject({ code: 'INTERNAL' });
    const errors = (await webhooks()).map(({ data }) => data.error);
    expect(errors.toSorted()).toEqual(['AUDIO_NOT_READABLE', 'INTERNAL']);
    expect(recognition.live).toEqual([]);
  });

  it('forwards storage errors unchanged', async () => {
    const { transcriber, userId, request } = await setUp();
    const pending = await transcriber.begin({ userId, requestId: 'r', signal: new AbortController().signal });
    await writeFile(pending.uploadPath, AUDIO);
    const transcribing = pending.transcribe({ ...request, workspaceId: 'no uuid' });
    await expect(transcribing).rejects.toMatchObject({ code: '22P02' });
    await pending.end();
  });
});

describe('slot and files of an upload', () => {
  it('exist from the start of the upload until its end', async () => {
    const { transcriber, userId } = await setUp();
    const begin = () => transcriber.begin({ userId, requestId: 'r', signal: new AbortController().signal });
    const pending = await Promise.all(Array.from({ length: 8 }, begin));
    await expect(begin()).rejects.toMatchObject({ code: 'STT_CONCURRENCY_LIMIT', details: { limit: 8 } });
    await writeFile(pending[0]!.uploadPath, 'some of it');
    await Promise.all([pending[0]!.end(), pending[0]!.end()]);
    expect(existsSync(dirname(pending[0]!.uploadPath))).toBe(false);
    const again = await begin();
    await Promise.all([...pending, again].map((one) => one.end()));
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('disappear free of charge when the client disconnects', async () => {
    const { transcriber, userId, request, onListen, listenedFiles, recognition, wallet, webhooks } = await setUp({
      webhook: true,
    });
    onListen(() => new Promise(() => undefined));
    const client = new AbortController();
    const pending = await transcriber.begin({ userId, requestId: 'r', signal: client.signal });
    await writeFile(pending.uploadPath, AUDIO);
    const transcribing = pending.transcribe(request);
    transcribing.catch(() => undefined);
    await eventually(() => expect(listenedFiles).toHaveLength(1));
    client.abort(new TandemError('STT_CLIENT_CANCELLED', 'Gone.'));
    await expect(transcribing).rejects.toMatchObject({ code: 'STT_CLIENT_CANCELLED', status: 499 });
    expect(pending.signal.reason).toMatchObject({ code: 'STT_CLIENT_CANCELLED' });
    expect(listenedFiles[0]!.signal.aborted).toBe(true);
    expect(recognition.live).toEqual([]);
    await pending.end();
    expect(await wallet()).toBe(10n * USD);
    expect(await webhooks()).toEqual([]);
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('disappear when the upload ends during transcription', async () => {
    const { transcriber, userId, request, onListen, listenedFiles } = await setUp();
    onListen(() => new Promise(() => undefined));
    const pending = await transcriber.begin({ userId, requestId: 'r', signal: new AbortController().signal });
    await writeFile(pending.uploadPath, AUDIO);
    const transcribing = pending.transcribe(request);
    transcribing.catch(() => undefined);
    await eventually(() => expect(listenedFiles).toHaveLength(1));
    await pending.end();
    await expect(transcribing).rejects.toMatchObject({ code: 'STT_CLIENT_CANCELLED' });
    expect(listenedFiles[0]!.signal.aborted).toBe(true);
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('disappear with SHUTTING_DOWN on shutdown', async () => {
    const { transcriber, userId, request } = await setUp();
    const server = new AbortController();
    const pending = await transcriber.begin({ userId, requestId: 'r', signal: server.signal });
    const transcribing = pending.transcribe(request);
    server.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down.'));
    await expect(transcribing).rejects.toMatchObject({ code: 'SHUTTING_DOWN', status: 503 });
    await pending.end();
  });

  it('disappear after ten minutes, during the upload or later', async () => {
    const { transcriber, userId, clock, request, onListen, listenedFiles, wallet } = await setUp();
    const begin = () => transcriber.begin({ userId, requestId: 'r', signal: new AbortController().signal });
    const uploading = await begin();
    onListen(() => new Promise(() => undefined));
    const listening = await begin();
    await writeFile(listening.uploadPath, AUDIO);
    const transcribing = listening.transcribe(request);
    transcribing.catch(() => undefined);
    await eventually(() => expect(listenedFiles).toHaveLength(1));
    clock.advance(600_000);
    await expect(transcribing).rejects.toMatchObject({ code: 'STT_TIMEOUT', status: 504 });
    await eventually(() => expect(uploading.signal.reason).toMatchObject({ code: 'STT_TIMEOUT' }));
    expect(listenedFiles[0]!.signal.aborted).toBe(true);
    await Promise.all([uploading.end(), listening.end()]);
    expect(await wallet()).toBe(10n * USD);
  });
});

it('the language list contains the 39 languages of the catalogue, and auto for files only', async () => {
  const languages = (await setUp()).transcriber.languages();
  expect(languages).toHaveLength(40);
  expect(languages[0]).toMatchObject({ language_id: 'auto', auto: true, websocket: false });
  expect(languages.filter(({ websocket }) => websocket)).toHaveLength(27);
  expect(languages.every(({ rest }) => rest)).toBe(true);
});

type Hear = (file: { emit: (event: RecognitionEvent) => void }) => void | Promise<void>;

interface SetUpOptions {
  balanceNano?: bigint;
  webhook?: boolean;
  refine?: TranscriberOptions['refine'];
  /** Called after each commit of the transcriber; the response is lost if it throws. */
  afterCommit?: () => void;
}

async function setUp(options: SetUpOptions = {}) {
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql, { balanceNano: options.balanceNano ?? 10n * USD });
  const workspaceId = workspace.id;
  if (options.webhook) {
    await createWebhook(sql, {
      id: randomUUID(),
      workspaceId,
      url: 'https://hooks.example.com/stt',
      events: ['stt.completed', 'stt.failed'],
      secretEncrypted: Buffer.alloc(8),
      now: NOW,
    });
  }
  const recognition = new FakeRecognition();
  const listenedFiles: ListenToFileOptions[] = [];
  let onHear: Hear = () => undefined;
  const listening = {
    async listenToFile(file: ListenToFileOptions): Promise<FileAnalysis> {
      listenedFiles.push(file);
      const { stream } = recognition;
      await onHear({ emit: (event) => stream.emit(event) });
      stream.emit({ type: 'recognition.ended' });
      return ANALYSIS;
    },
  };
  const clock = createTestClock();
  const deliverer = createFakeDeliverer();
  const begin = async (work: (tx: Tx) => Promise<unknown>) => {
    const result = await sql.begin(work);
    options.afterCommit?.();
    return result;
  };
  const transcriber = createTranscriber({
    sql: new Proxy(sql, { get: (target, key) => (key === 'begin' ? begin : Reflect.get(target, key)) }),
    limits: createLimitsInProcess(),
    listening,
    recognition,
    refine: options.refine ?? null,
    deliverer,
    tempDir,
    clock,
    logger: createTestLogger(),
  });
  const request: TranscribeRequest = {
    workspaceId,
    userId: user.id,
    apiKeyId: null,
    plan: 'enterprise',
    fileName: 'call.wav',
    mediaType: 'audio/wav',
    languages: null,
    diarize: false,
    minSpeakers: null,
    maxSpeakers: null,
    context: null,
    keywords: [],
    scriptCorrection: false,
    minSplitMs: 20_000,
    includeWords: false,
    includeConfidence: false,
  };

  return {
    transcriber,
    userId: user.id,
    workspaceId,
    request,
    recognition,
    listenedFiles,
    clock,
    deliverer,
    onListen(run: Hear) {
      onHear = run;
    },
    async transcribe(more: Partial<TranscribeRequest> = {}, audio = AUDIO) {
      const signal = new AbortController().signal;
      const pending = await transcriber.begin({ userId: user.id, requestId: 'request-1', signal });
      try {
        await writeFile(pending.uploadPath, audio);
        return await pending.transcribe({ ...request, ...more });
      } finally {
        await pending.end();
      }
    },
    wallet: async () => (await walletOf(sql, workspaceId)).balanceNano,
    usage: async () => (await listUsage(sql, { workspaceId }, { page: 1, limit: 10 })).rows,
    async webhooks() {
      const rows = await sql<{ body: string }[]>`
        select body from deliveries where workspace_id = ${workspaceId} order by created_at, id`;
      return rows.map(({ body }) => {
        const { event, data } = JSON.parse(body) as { event: string; data: Record<string, unknown> };
        return { event, data };
      });
    },
  };
}

interface Spoken {
  utteranceId?: number;
  channel?: number;
  startMs?: number;
  language?: string;
  words?: RecognisedWord[];
}

function recognised(
  text: string,
  { utteranceId = 0, channel = 0, startMs = 1_000, language = 'en', words }: Spoken = {},
): RecognitionEvent {
  return {
    type: 'utterance.recognised',
    utteranceId,
    summary: { ...SUMMARY, channel, startMs, endMs: startMs + 2_000 },
    recognition: {
      text,
      words: words ?? text.split(' ').map((word, index) => spoken(word, startMs + index * 400)),
      language,
      languageProbability: null,
      confidence: 0.9,
      model: 'fake/en',
    },
    isDiarized: false,
    lagMs: 10,
  };
}

function spoken(word: string, startMs: number, speaker: string | null = null): RecognisedWord {
  return { word, startMs, endMs: startMs + 300, confidence: 0.9, speaker, original: null };
}

function unusable(
  reason: Extract<RecognitionEvent, { type: 'utterance.unusable' }>['reason'],
  utteranceId = 0,
): RecognitionEvent {
  return { type: 'utterance.unusable', utteranceId, summary: SUMMARY, reason, rejectedText: null, lagMs: 10 };
}

function failed(code: string, retryAfterS: number | null): RecognitionEvent {
  return { type: 'recognition.failed', code, message: 'It did not work.', retryAfterS };
}
