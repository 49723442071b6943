import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { parseWav } from '../../media/wav.ts';
import { eventually } from '../eventually.ts';
import { FakeTtsDesk } from './fake-tts-desk.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const PCM = Buffer.from([1, 0, 2, 0, 3, 0]);

let fixture: HttpFixture;
let client: OpenAI;
let clientOf: (key: string) => OpenAI;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const baseURL = `${await fixture.app.listen({ host: '127.0.0.1', port: 0 })}/v1`;
  clientOf = (apiKey) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  client = clientOf(fixture.owner.key);
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => Object.assign(fixture.speech, new FakeTtsDesk()));

const HELLO = { model: 'tts-1', voice: 'alloy', input: 'Hello there.' };
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

describe('OpenAI speech client', () => {
  it('receives MP3 by default, and the charge in the headers', async () => {
    const response = await client.audio.speech.create(HELLO);
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    expect(response.headers.get('x-credit-charged')).toBe('0.000165');
    expect(await bytesOf(response)).toEqual(PCM);
    expect(fixture.speech.asked).toMatchObject([
      {
        ...{ workspaceId: fixture.owner.workspaceId, userId: fixture.owner.userId, apiKeyId: fixture.owner.keyId },
        ...{ text: 'Hello there.', voiceId: 'alloy', format: { encoding: 'MP3', sampleRateHz: 24_000 } },
        style: { wordsPerMinute: null, speed: 1, stability: 50, similarity: 75, enhance: true },
      },
    ]);
  });

  it.each([
    ['opus', 'audio/ogg', 'OGG_OPUS'],
    ['pcm', 'audio/pcm', 'LINEAR16'],
    ['wav', 'audio/wav', 'LINEAR16'],
  ] as const)('receives %s as %s', async (response_format, type, encoding) => {
    const response = await client.audio.speech.create({ ...HELLO, response_format });
    expect(response.headers.get('content-type')).toBe(type);
    const bytes = await bytesOf(response);
    if (response_format !== 'wav') expect(bytes).toEqual(PCM);
    else expect(parseWav(bytes)).toMatchObject({ sampleRateHz: 24_000, samples: [Int16Array.from([1, 2, 3])] });
    expect(fixture.speech.asked[0]?.format).toEqual({ encoding, sampleRateHz: 24_000 });
  });

  it('can send a voice id, a speed, and instructions, which have no effect', async () => {
    const voice = { id: '3f1f5a0e-1a8c-8d1e-9b7a-2f6b8c0d4e11' };
    const more = { voice, speed: 4, instructions: 'Speak like a pirate.', stream_format: 'audio' as const };
    await (await client.audio.speech.create({ ...HELLO, ...more })).arrayBuffer();
    await (await client.audio.speech.create({ ...HELLO, voice: 'hi', speed: 0.25 })).arrayBuffer();
    expect(fixture.speech.asked).toMatchObject([
      { voiceId: voice.id, style: { speed: 4 } },
      { voiceId: 'hi', style: { speed: 0.25 } },
    ]);
  });

  it('throws the matching error for each rejection', async () => {
    const create = (more: object = {}, by = client) => by.audio.speech.create({ ...HELLO, ...more });
    await expect(create({ response_format: 'aac' })).rejects.toMatchObject({
      ...{ status: 400, code: 'VALIDATION_FAILED', param: 'response_format', type: 'invalid_request_error' },
      message: '400 response_format must be one of mp3, opus, wav, pcm.',
    });
    await expect(create({ model: 'whisper-1' })).rejects.toMatchObject({ status: 404, code: 'MODEL_NOT_FOUND' });
    await expect(create({}, clientOf('sk_wrong'))).rejects.toThrow(OpenAI.AuthenticationError);
    const viewer = await fixture.addMemberWith('viewer');
    await expect(create({}, clientOf(viewer.key))).rejects.toThrow(OpenAI.PermissionDeniedError);
    expect(fixture.speech.asked).toEqual([]);
    for (const [code, status] of [
      ['VOICE_NOT_FOUND', 404],
      ['INSUFFICIENT_CREDITS', 402],
      ['TTS_UNAVAILABLE', 503],
    ] as const) {
      fixture.speech.refusal = new TandemError(code, 'No.');
      await expect(create()).rejects.toMatchObject({ status, code });
    }
  });

  it('throws when synthesis fails midway', async () => {
    fixture.speech.failure = new Error('synthesis failed');
    const response = await client.audio.speech.create(HELLO);
    await expect(response.arrayBuffer()).rejects.toThrow();
    await eventually(() => expect(fixture.speech.signal?.aborted).toBe(true));
  });

  it('frees its slot on abort, and gets 429 beyond five concurrent requests', async () => {
    const proceed = Promise.withResolvers<void>();
    fixture.speech.speak = async (_request, signal) => {
      async function* parts() {
        yield { audio: PCM, durationMs: 1, words: [] };
        await Promise.race([proceed.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
      }
      const charge = { entryId: 'e', chargedNano: 1n, balanceBeforeNano: 2n, balanceAfterNano: 1n };
      return { streamId: 't', voiceId: 'v', characters: 1, charge, parts: parts() };
    };
    const leaving = new AbortController();
    const options = { signal: leaving.signal };
    const started = await Promise.all(Array.from({ length: 5 }, () => client.audio.speech.create(HELLO, options)));
    expect(started).toHaveLength(5);
    await expect(client.audio.speech.create(HELLO)).rejects.toMatchObject({
      status: 429,
      code: 'TTS_CONCURRENCY_LIMIT',
    });
    leaving.abort();
    proceed.resolve();
    await eventually(async () => expect((await client.audio.speech.create(HELLO)).status).toBe(200));
  });
});

describe('POST /v1/audio/speech', () => {
  it.each([
    [{ input: undefined }, 'input', 'is required'],
    [{ input: ' ' }, 'input', 'Must not be blank'],
    [{ input: 'a'.repeat(4097) }, 'input', 'must not have more than 4096 characters'],
    [{ speed: 0.24 }, 'speed', 'must be at least 0.25'],
    [{ speed: 4.1 }, 'speed', 'must be at most 4'],
    [{ voice: '' }, 'voice', ''],
    [{ voice: { name: 'alloy' } }, 'voice', ''],
    [{ stream_format: 'sse' }, 'stream_format', 'must be "audio"'],
    [{ voice_id: 'en-us' }, 'voice_id', 'is not a known field'],
  ])('rejects %j and names the field', async (more, path, message) => {
    const { status, body } = await fixture.call('POST', '/v1/audio/speech', { body: { ...HELLO, ...more } });
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.message).toContain(message);
    expect(body.details[0].path.split('.')[0]).toBe(path);
    expect(fixture.speech.asked).toEqual([]);
  });
});
