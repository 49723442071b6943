import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { createTranscriber } from '../../actors/stt/transcriber.actor.ts';
import type { Transcriber } from '../../actors/stt/transcriber.ts';
import type { ListeningPlane } from '../../media/listening-plane.ts';
import { createListeningPlane } from '../../media/listening-plane.workers.ts';
import { createSpeechRecognition } from '../../speech/speech-recognition.thread.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createLimitsInProcess } from '../../storage/limits/limits.ts';
import { createTestClock, createTestLogger } from '../actors/fakes.ts';
import { eventually } from '../eventually.ts';
import { encoded, wavFile } from '../media/audio-file/wav-files.ts';
import { asMulaw8k, spokenUtterances } from '../speech/spoken.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { type FormPart, field, formOf } from './multipart-body.ts';

/** Real decoding and a real speech thread; only the engine is scripted. */

const USD = 1_000_000_000n;
const SPEECH = spokenUtterances();
const [SENTENCE, OTHER_SENTENCE] = [SPEECH[0]!.samples, SPEECH[1]!.samples];
const PAUSE = new Int16Array(2 * 16_000);

let fixture: HttpFixture;
let folder: string;
let tempDir: string;
let listening: ListeningPlane;
let recognition: SpeechRecognition;
let asked: FormData[];
let onAsked: (response: ServerResponse, form: FormData) => void;

const engine = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', async () => {
    const headers = { 'content-type': request.headers['content-type'] ?? '' };
    const form = await new Response(Buffer.concat(chunks), { headers }).formData();
    asked.push(form);
    onAsked(response, form);
  });
});

beforeAll(async () => {
  engine.listen(0, '127.0.0.1');
  await once(engine, 'listening');
  folder = await mkdtemp(join(tmpdir(), 'tandem-stt-'));
  tempDir = await mkdtemp(join(folder, 'temp-'));
  listening = createListeningPlane({ workers: 1 });
  recognition = await createSpeechRecognition({
    settings: {
      preferred: 'openai',
      processes: 1,
      modelsDir: join(folder, 'models'),
      cacheDir: join(folder, 'cache'),
      upstream: {
        baseUrl: `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`,
        apiKey: 'sk-upstream',
        model: 'whisper-1',
      },
    },
  });
  let transcriber: Transcriber | null = null;
  fixture = await createHttpFixture({
    transcriber: {
      begin: (request) => transcriber!.begin(request),
      languages: () => transcriber!.languages(),
      models: () => transcriber!.models(),
    },
  });
  const { sql } = fixture;
  transcriber = createTranscriber({
    sql,
    limits: createLimitsInProcess(),
    listening,
    recognition,
    refine: null,
    deliverer: { enqueue: async () => {} },
    tempDir,
    download: { allowCidrs: parseCidrs(['127.0.0.0/8']) },
    clock: createTestClock(),
    logger: createTestLogger(),
  });
  const wallet = { workspaceId: fixture.owner.workspaceId, amountNano: 5n * USD };
  await topUp(sql, { ...wallet, paymentType: 'admin_bonus', operationKey: 'top-up' });
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await Promise.all([listening.close(), recognition.close()]);
  engine.closeAllConnections();
  engine.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  asked = [];
  onAsked = (response) => answer(response, 'it was said');
});

function answer(response: ServerResponse, text: string): void {
  const words = text.split(' ').map((word, i) => ({ word, start: i * 0.3, end: i * 0.3 + 0.2 }));
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ task: 'transcribe', language: 'english', duration: 2, text, words }));
}

function post(value: Buffer, name: string, fields: readonly FormPart[] = [], path = '/stt') {
  const { body, headers } = formOf([...fields, { name: 'file', value, filename: name }]);
  return fixture.call('POST', path, { body, headers });
}

const balance = async () => (await walletOf(fixture.sql, fixture.owner.workspaceId)).balanceNano;

function joined(...parts: Int16Array[]): Int16Array {
  const whole = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => {
    whole.set(part, at);
    return at + part.length;
  }, 0);
  return whole;
}

describe('transcription of a file', () => {
  it('lists the model under the name that transcripts use', async () => {
    const { body } = await fixture.call('GET', '/models');
    expect(body.data).toContainEqual(
      expect.objectContaining({ id: 'openai/whisper-1', type: 'stt', owned_by: 'openai' }),
    );
  });

  it('splits at a silence, recognises both parts, and charges by duration', async () => {
    const before = await balance();
    const speech = joined(SENTENCE, PAUSE, OTHER_SENTENCE);
    const fields = [field('language', 'en'), field('min_split_sec', '6'), field('return_timestamps', 'word')];
    const { status, body, headers } = await post(wavFile(speech), 'two.wav', fields);
    expect([status, body.text]).toEqual([200, 'it was said it was said']);
    expect(body).toMatchObject({
      language: 'en',
      language_source: 'long_audio_chunked',
      duration: Math.round((speech.length * 1000) / 16_000) / 1000,
      warning_codes: [],
      model: 'openai/whisper-1',
    });
    expect(asked).toHaveLength(2);
    expect(asked[0]?.get('language')).toBe('en');
    const chunks = body.segments.map((segment: { chunk_idx: number }) => segment.chunk_idx);
    expect(chunks).toEqual([0, 1]);
    const [first, last] = [body.words[0], body.words.at(-1)];
    expect(first.start).toBeLessThan(1);
    expect(last.end).toBeGreaterThan(SENTENCE.length / 16_000 + 2);
    const charged = before - (await balance());
    expect(Number(charged) / 1e9).toBe(body.cost_usd);
    expect(charged).toBe(BigInt(Math.ceil((speech.length / 16) * 100)));
    expect(headers['x-billing-tx']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.each([
    ['MP3', 'speech.mp3', () => compressed('mp3')],
    ['raw mu-law', 'speech.ulaw', async () => Buffer.from(asMulaw8k(SENTENCE))],
  ])('accepts %s', async (_kind, name, make) => {
    const { status, body } = await post(await make(), name);
    expect([status, body.text, body.language_source]).toEqual([200, 'it was said', 'detected']);
    expect(Math.abs(body.duration - SENTENCE.length / 16_000)).toBeLessThan(0.2);
    expect(body.snr_db).toBeGreaterThan(10);
  });

  it('separates the parties of a call by channel', async () => {
    const agent = joined(SENTENCE, new Int16Array(OTHER_SENTENCE.length));
    const customer = joined(new Int16Array(SENTENCE.length), OTHER_SENTENCE);
    onAsked = (response) => answer(response, asked.length === 1 ? 'how may i help you' : 'where is my parcel');
    const { body } = await post(wavFile(agent, customer), 'call.wav', [field('diarize', 'true')]);
    expect(body.speakers).toEqual(['speaker_1', 'speaker_2']);
    expect(body.segments.map(({ speaker, text }: { speaker: string; text: string }) => [speaker, text])).toEqual([
      ['speaker_1', 'how may i help you'],
      ['speaker_2', 'where is my parcel'],
    ]);
  });

  it("returns and charges the same in OpenAI's format", async () => {
    const before = await balance();
    const wanted = [field('response_format', 'srt'), field('model', 'openai/whisper-1')];
    const { status, raw, headers } = await post(wavFile(SENTENCE), 'a.wav', wanted, '/v1/audio/transcriptions');
    expect(status).toBe(200);
    expect(raw.toString()).toMatch(/^1\n00:00:00,\d{3} --> 00:00:0\d,\d{3}\nit was said\n$/);
    const charged = before - (await balance());
    expect(charged).toBe(BigInt(Math.ceil((SENTENCE.length / 16) * 100)));
    expect(Number(headers['x-credit-charged'])).toBe(Number(charged) / 1e9);
    const refused = await post(Buffer.from('not audio'), 'a.wav', [], '/v1/audio/transcriptions');
    expect([refused.status, refused.body.error.code]).toEqual([422, 'AUDIO_NOT_READABLE']);
    expect(before - (await balance())).toBe(charged);
  });

  it('accepts a raw body with options in the query', async () => {
    const headers = { 'content-type': 'audio/wav' };
    const answer = await fixture.call('POST', '/stt?language=en', { body: wavFile(SENTENCE), headers });
    expect([answer.status, answer.body.text]).toEqual([200, 'it was said']);
    expect(asked[0]?.get('language')).toBe('en');
    const empty = await fixture.call('POST', '/stt', { body: Buffer.alloc(0), headers });
    expect([empty.status, empty.body.code]).toEqual([422, 'AUDIO_EMPTY']);
  });

  it('fetches from a URL, and charges nothing when that fails', async () => {
    const files = createServer(({ url: path }, response) => {
      const body = path === '/call.ulaw' ? Buffer.from(asMulaw8k(SENTENCE)) : Buffer.alloc(26 * 2 ** 20);
      if (path === '/nothing') response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(body);
    });
    files.listen(0, '127.0.0.1');
    await once(files, 'listening');
    const base = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
    const fetchFrom = (url: string) => fixture.call('POST', '/stt', { body: { url, language: 'en' } });
    const before = await balance();
    for (const [url, status, code] of [
      [`${base}/nothing`, 422, 'AUDIO_URL_UNREACHABLE'],
      [`${base}/large`, 422, 'AUDIO_URL_UNREACHABLE'],
      ['https://10.0.0.1/a.wav', 400, 'INVALID_AUDIO_URL'],
      ['http://169.254.169.254/latest', 400, 'INVALID_AUDIO_URL'],
      ['file:///etc/passwd', 400, 'INVALID_AUDIO_URL'],
    ] as const) {
      const { body, ...answer } = await fetchFrom(url);
      expect([answer.status, body.code], url).toEqual([status, code]);
    }
    expect(await balance()).toBe(before);
    const { status, body } = await fetchFrom(`${base}/call.ulaw`);
    expect([status, body.text]).toEqual([200, 'it was said']);
    expect(before - (await balance())).toBe(BigInt(Math.round(body.cost_usd * 1e9)));
    await eventually(async () => expect(await readdir(tempDir)).toEqual([]));
    files.closeAllConnections();
    files.close();
  });

  it('charges silence by its length without using the engine', async () => {
    const before = await balance();
    const { status, body } = await post(wavFile(new Int16Array(5 * 16_000)), 'silence.wav');
    expect(status).toBe(200);
    expect(body).toMatchObject({ text: '', warning_codes: ['no_speech_detected'], segments: [] });
    expect(asked).toEqual([]);
    expect(body.cost_usd).toBeGreaterThan(0);
    expect(before - (await balance())).toBe(BigInt(Math.round(body.cost_usd * 1e9)));
  });
});

describe('remote engine', () => {
  it.each([
    [429, { 'retry-after': '17' }, 429, 'STT_UPSTREAM_RATE_LIMIT', '17'],
    [500, {}, 503, 'STT_UPSTREAM_UNAVAILABLE', '5'],
  ])('costs nothing when it answers %i', async (engineStatus, engineHeaders, status, code, retryAfter) => {
    const before = await balance();
    onAsked = (response) => {
      const headers = { 'content-type': 'application/json', ...(engineHeaders as Record<string, string>) };
      response.writeHead(engineStatus, headers).end('{"error":{"message":"sk-upstream is at its limit"}}');
    };
    const refused = await post(wavFile(SENTENCE), 'speech.wav');
    expect([refused.status, refused.body.code]).toEqual([status, code]);
    expect(refused.headers['retry-after']).toBe(retryAfter);
    expect(refused.raw.toString()).not.toContain('sk-upstream');
    expect(await balance()).toBe(before);
  });

  it('gets a cancelled request when the client disconnects', async () => {
    await fixture.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = fixture.app.server.address() as AddressInfo;
    const left = Promise.withResolvers<void>();
    onAsked = (response) => response.once('close', left.resolve);
    const client = new AbortController();
    const { body, headers } = formOf([{ name: 'file', value: wavFile(SENTENCE), filename: 'speech.wav' }]);
    const asking = fetch(`http://127.0.0.1:${port}/stt`, {
      method: 'POST',
      body,
      headers: { ...headers, authorization: `Bearer ${fixture.owner.key}` },
      signal: client.signal,
    });
    asking.catch(() => undefined);
    await eventually(() => expect(asked).toHaveLength(1));
    client.abort();
    await expect(asking).rejects.toThrow();
    await left.promise;
  });
});

it('the upload folder is empty afterwards', async () => {
  await eventually(async () => expect(await readdir(tempDir)).toEqual([]));
});

async function compressed(format: string): Promise<Buffer> {
  const path = join(folder, 'speech.wav');
  await writeFile(path, wavFile(SENTENCE));
  return await encoded(path, format);
}
