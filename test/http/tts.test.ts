import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { parseWav } from '../../media/wav.ts';
import { createLimitsInProcess, type Limits } from '../../storage/limits/limits.ts';
import { untilTruthy } from '../eventually.ts';
import { FakeTtsDesk } from './fake-tts-desk.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

let fixture: HttpFixture;
let limits: Limits;

beforeAll(async () => {
  limits = createLimitsInProcess();
  fixture = await createHttpFixture({ limits });
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
});

beforeEach(() => {
  Object.assign(fixture.speech, new FakeTtsDesk());
});

const linesOf = (raw: Buffer) =>
  raw
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
const audioOf = (lines: { type: string; result: { audioContent: string } }[]) =>
  Buffer.concat(
    lines.filter(({ type }) => type === 'chunk').map(({ result }) => Buffer.from(result.audioContent, 'base64')),
  );

describe('Accept header of POST /tts-stream', () => {
  const speak = (accept: string, more: object = {}) =>
    fixture.call('POST', '/tts-stream', { headers: { accept }, body: { text: 'Hello there.', ...more } });

  it.each([
    ['audio/mpeg', 'MP3', 'audio/mpeg'],
    ['audio/mp3', 'MP3', 'audio/mp3'],
    ['audio/ogg;q=0.5, text/html', 'OGG_OPUS', 'audio/ogg'],
    ['audio/pcm', 'LINEAR16', 'audio/pcm;rate=24000;channels=1'],
    ['AUDIO/PCMU', 'MULAW', 'audio/PCMU;rate=24000;channels=1'],
    ['audio/PCMA', 'ALAW', 'audio/PCMA;rate=24000;channels=1'],
    ['audio/mpeg, */*;q=0.1', 'MP3', 'audio/mpeg'],
  ])('%s selects audio only, as %s', async (accept, encoding, type) => {
    const { status, headers, raw } = await speak(accept);
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'content-type': type, 'x-credit-charged': '0.000165' });
    expect(raw).toEqual(Buffer.from([1, 0, 2, 0, 3, 0]));
    expect(fixture.speech.asked[0]?.format).toEqual({ encoding, sampleRateHz: 24_000 });
  });

  it('audio/* selects WAV at the requested sample rate', async () => {
    const { headers, raw } = await speak('audio/*', { audio_config: { sample_rate_hertz: 8000 } });
    expect(headers['content-type']).toBe('audio/wav');
    expect(parseWav(raw)).toMatchObject({ sampleRateHz: 8000, samples: [Int16Array.from([1, 2, 3])] });
  });

  it('audio/* accepts any requested encoding', async () => {
    const { headers } = await speak('audio/*', { audio_config: { audio_encoding: 'MULAW', sample_rate_hertz: 8000 } });
    expect(headers['content-type']).toBe('audio/PCMU;rate=8000;channels=1');
  });

  it.each(['*/*', 'application/json', 'application/x-ndjson, audio/mpeg', 'text/html', 'nonsense'])(
    '%s selects JSON lines',
    async (accept) => {
      expect((await speak(accept)).headers['content-type']).toMatch('application/x-ndjson');
    },
  );

  it('fails before any charge when it contradicts the requested encoding', async () => {
    const { status, body } = await speak('audio/mpeg', { audio_config: { audio_encoding: 'WAV' } });
    expect(status).toBe(400);
    expect(body).toMatchObject({
      code: 'VALIDATION_FAILED',
      message: 'audio_encoding WAV does not match the Accept header. Accept audio/wav, or leave audio_encoding out.',
    });
    expect(fixture.speech.asked).toEqual([]);
  });

  it('for audio aborts the connection when synthesis fails midway', async () => {
    const { port } = fixture.app.server.address() as AddressInfo;
    fixture.speech.failure = new Error('secret');
    const response = await fetch(`http://127.0.0.1:${port}/tts-stream`, {
      method: 'POST',
      headers: {
        ...{ accept: 'audio/pcm', authorization: `Bearer ${fixture.owner.key}` },
        'content-type': 'application/json',
      },
      body: JSON.stringify({ text: 'Hello there.' }),
    });
    await expect(response.arrayBuffer()).rejects.toThrow('terminated');
  });
});

it('POST /tts-stream reports the charge to a member, but not the wallet balance', async () => {
  const as = await fixture.addMemberWith('member');
  const { status, headers } = await fixture.call('POST', '/tts-stream', { as, body: { text: 'Hello there.' } });
  expect(status).toBe(200);
  expect(headers).toMatchObject({ 'x-credit-charged': '0.000165' });
  expect(headers).not.toHaveProperty('x-credit-balance');
});

describe.each(['/tts-stream', '/v1/stream', '/tts-synthesize'])('POST %s', (path) => {
  it('streams audio as JSON lines and ends with word times and the cost', async () => {
    const { status, headers, raw } = await fixture.call('POST', path, { body: { text: 'Hello there.' } });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'x-credit-charged': '0.000165',
      'x-credit-balance': '0.999835',
      'x-billing-tx': '5b0f3c9e-6a0c-4d5c-8b6e-0d2f7a1c9e34',
    });
    const lines = linesOf(raw);
    expect(audioOf(lines)).toEqual(Buffer.from([1, 0, 2, 0, 3, 0]));
    expect(lines.at(-1)).toEqual({
      type: 'complete',
      result: {
        timestampInfo: {
          wordAlignment: {
            words: ['Hello', 'there.'],
            wordStartTimeSeconds: [0, 0.255],
            wordEndTimeSeconds: [0.25, 0.37],
          },
        },
        usage: { processedCharactersCount: 11 },
      },
      duration_seconds: 0.375,
      sample_rate_hertz: 24000,
      audio_encoding: 'LINEAR16',
      voice_id: 'c0ffee',
      cost_usd: 0.000165,
    });
    expect(fixture.speech.asked).toMatchObject([
      {
        workspaceId: fixture.owner.workspaceId,
        apiKeyId: fixture.owner.keyId,
        text: 'Hello there.',
        voiceId: null,
        style: { wordsPerMinute: null, speed: 1, stability: 50, similarity: 75, enhance: true },
        format: { encoding: 'LINEAR16', sampleRateHz: 24_000 },
      },
    ]);
  });

  it.each([
    [{}, 'text'],
    [{ text: '' }, 'text'],
    [{ text: ' \n\t ' }, 'text'],
    [{ text: 'a'.repeat(5001) }, 'text'],
    [{ text: 7 }, 'text'],
    [{ text: 'a', speed: 0.49 }, 'speed'],
    [{ text: 'a', speed: 2.01 }, 'speed'],
    [{ text: 'a', speed: '1' }, 'speed'],
    [{ text: 'a', loudness: 1 }, 'loudness'],
    [{ text: 'a', voice_id: '' }, 'voice_id'],
    [{ text: 'a', voice_id: 'v'.repeat(65) }, 'voice_id'],
    [{ text: 'a', wpm: 59 }, 'wpm'],
    [{ text: 'a', wpm: 401 }, 'wpm'],
    [{ text: 'a', stability: 101 }, 'stability'],
    [{ text: 'a', similarity: -1 }, 'similarity'],
    [{ text: 'a', enhance: 'yes' }, 'enhance'],
    [{ text: 'a', audio_config: { audio_encoding: 'FLAC' } }, 'audio_config.audio_encoding'],
    [{ text: 'a', audio_config: { sample_rate_hertz: 12345 } }, 'audio_config.sample_rate_hertz'],
    [{ text: 'a', audio_config: { sample_rate: 8000 } }, 'audio_config.sample_rate'],
    [{ text: 'a', audio_config: [] }, 'audio_config'],
    [{ text: 'a', audio_encoding: 'PCM' }, 'audio_encoding'],
    [{ text: 'a', timestamp_type: 'LETTER' }, 'timestamp_type'],
  ])('rejects %j and names the field', async (body, wrong) => {
    const answer = await fixture.call('POST', path, { body });
    expect(answer).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
    expect(answer.body.details[0].path).toBe(wrong);
    expect(fixture.speech.asked).toEqual([]);
  });

  it('accepts 5000 characters outside the basic plane', async () => {
    expect((await fixture.call('POST', path, { body: { text: '😀'.repeat(5000) } })).status).toBe(200);
  });

  it('passes voice and style to the engine', async () => {
    const how = { speed: 2, wpm: 100, stability: 0, similarity: 100, enhance: false };
    await fixture.call('POST', path, { body: { text: 'a', voice_id: 'HI', ...how } });
    expect(fixture.speech.asked).toMatchObject([
      {
        voiceId: 'HI',
        style: { wordsPerMinute: 100, speed: 2, stability: 0, similarity: 100, enhance: false },
      },
    ]);
  });

  it('accepts encoding and rate in audio_config or the older fields, and prefers audio_config', async () => {
    const formats = [
      { audio_config: { audio_encoding: 'MULAW', sample_rate_hertz: 8000 } },
      { audio_encoding: 'ALAW', sample_rate: 16000 },
      { audio_config: { sample_rate_hertz: 48000 }, sample_rate: 8000, audio_encoding: 'MULAW' },
      { audio_config: { audio_encoding: 'MP3' }, sample_rate: 44100 },
      { audio_config: { audio_encoding: 'OGG_OPUS', sample_rate_hertz: 12000 } },
      { audio_encoding: 'WAV' },
    ];
    for (const format of formats) await fixture.call('POST', path, { body: { text: 'a', ...format } });
    expect(fixture.speech.asked.map(({ format }) => format)).toEqual([
      { encoding: 'MULAW', sampleRateHz: 8000 },
      { encoding: 'ALAW', sampleRateHz: 16_000 },
      { encoding: 'MULAW', sampleRateHz: 48_000 },
      { encoding: 'MP3', sampleRateHz: 44_100 },
      { encoding: 'OGG_OPUS', sampleRateHz: 12_000 },
      { encoding: 'LINEAR16', sampleRateHz: 24_000 },
    ]);
  });

  it('rejects unknown voices and invalid SSML with the reason', async () => {
    for (const [code, status] of [
      ['VOICE_NOT_FOUND', 404],
      ['VOICE_NOT_READY', 409],
      ['INVALID_SSML', 400],
    ] as const) {
      fixture.speech.refusal = new TandemError(code, 'GET /voices lists them.');
      const answer = await fixture.call('POST', path, { body: { text: '<speak>', voice_id: '../etc/passwd' } });
      expect(answer).toMatchObject({ status, body: { code, message: 'GET /voices lists them.' } });
    }
  });

  it('returns an error before the first audio as a response, and frees the slot', async () => {
    fixture.speech.refusal = new TandemError('INSUFFICIENT_CREDITS', 'The wallet does not cover this.');
    for (let attempt = 0; attempt < 7; attempt += 1) {
      const answer = await fixture.call('POST', path, { body: { text: 'a' } });
      expect(answer).toMatchObject({ status: 402, body: { code: 'INSUFFICIENT_CREDITS' } });
    }
  });

  it('reports a later error in the last line, without internal details', async () => {
    fixture.speech.failure = new Error('secret of the house');
    const { status, raw } = await fixture.call('POST', path, { body: { text: 'a' } });
    expect(status).toBe(200);
    expect(linesOf(raw).at(-1)).toEqual({ type: 'error', message: 'Speech synthesis failed.' });
  });

  it('refuses viewers', async () => {
    const viewer = await fixture.addMemberWith('viewer');
    expect(await fixture.call('POST', path, { as: viewer, body: { text: 'a' } })).toMatchObject({ status: 403 });
  });
});

describe('POST /tts-synthesize', () => {
  it('starts WAV with a header that players accept', async () => {
    const body = { text: 'a', audio_config: { audio_encoding: 'WAV', sample_rate_hertz: 16000 } };
    const lines = linesOf((await fixture.call('POST', '/tts-synthesize', { body })).raw);
    expect(parseWav(audioOf(lines))).toMatchObject({
      channels: 1,
      sampleRateHz: 16_000,
      samples: [Int16Array.from([1, 2, 3])],
    });
    expect(lines.at(-1).audio_encoding).toBe('WAV');
  });

  it('omits word times on request', async () => {
    const body = { text: 'a', timestamp_type: 'NONE' };
    const lines = linesOf((await fixture.call('POST', '/tts-synthesize', { body })).raw);
    expect(lines.at(-1).result).toEqual({ usage: { processedCharactersCount: 11 } });
  });

  it('splits long audio into chunks of whole samples', async () => {
    const audio = Buffer.alloc(100_000, 3);
    fixture.speech.parts = [{ audio, durationMs: 1000, words: [] }];
    const lines = linesOf((await fixture.call('POST', '/tts-synthesize', { body: { text: 'a' } })).raw);
    expect(lines.length).toBeGreaterThan(3);
    expect(audioOf(lines)).toEqual(audio);
    for (const { type, result } of lines) {
      if (type === 'chunk') expect(Buffer.from(result.audioContent, 'base64').byteLength % 2).toBe(0);
    }
  });
});

describe('streaming client of POST /tts-stream', () => {
  it('ends synthesis and frees its slot by disconnecting', async () => {
    const { port } = fixture.app.server.address() as { port: number };
    const audio = Buffer.alloc(16_000);
    fixture.speech.parts = Array.from({ length: 100_000 }, () => ({ audio, durationMs: 1000, words: [] }));
    for (let hangUp = 0; hangUp < 7; hangUp += 1) {
      const socket = connect(port, '127.0.0.1');
      const body = '{"text":"a"}';
      socket.write(
        `POST /tts-stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${fixture.owner.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      await new Promise((resolve) => socket.once('data', resolve));
      socket.destroy();
      await untilTruthy(async () => fixture.speech.signal?.aborted === true, 'the synthesis ended');
    }
  });

  it.each([
    ['ends the synthesis when it stops reading', 100],
    ['receives all audio when it resumes in time', 600_000],
  ])('%s', async (_, stallTimeoutMs) => {
    const isGivenUp = stallTimeoutMs < 1000;
    await using stalling = await createHttpFixture({ limits, stallTimeoutMs });
    await stalling.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = stalling.app.server.address() as { port: number };
    const COUNT = 4000;
    let made = 0;
    async function* parts() {
      for (made = 1; made <= COUNT; made += 1) yield { audio: Buffer.alloc(16_000), durationMs: made, words: [] };
    }
    const speak = stalling.speech.speak.bind(stalling.speech);
    stalling.speech.speak = async (...asked) => ({ ...(await speak(...asked)), parts: parts() });
    const socket = connect(port, '127.0.0.1');
    socket.pause();
    socket.on('error', () => undefined);
    const body = '{"text":"a"}';
    socket.write(
      `POST /tts-stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${stalling.owner.key}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await untilTruthy(async () => {
      const before = made;
      await pause(50);
      return made > 0 && made === before;
    }, 'nothing more is made');
    // Socket buffers hold part of the 85 MB.
    expect(made).toBeLessThan(COUNT / 2);
    if (isGivenUp) await untilTruthy(async () => stalling.speech.signal?.aborted === true, 'it was given up');
    else {
      const chunks: Buffer[] = [];
      socket.on('data', (chunk) => void chunks.push(chunk));
      socket.resume();
      await once(socket, 'end');
      expect(Buffer.concat(chunks).toString()).toContain('"type":"complete"');
    }
    socket.destroy();
    const slots = await Promise.all(
      Array.from({ length: 5 }, () => limits.acquireSlot({ userId: stalling.owner.userId, kind: 'tts' })),
    );
    for (const slot of slots) await slot.release();
  });

  it('keeps no slot after disconnecting before the start', async () => {
    const released = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const slowLimits: Limits = {
      ...limits,
      async acquireSlot() {
        asked.resolve();
        await gone.promise;
        const release = async () => released.resolve();
        return { release, [Symbol.asyncDispose]: release };
      },
    };
    await using slow = await createHttpFixture({ limits: slowLimits });
    slow.app.server.on('request', (_, response) => response.once('close', () => setImmediate(gone.resolve)));
    await slow.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = slow.app.server.address() as { port: number };
    const client = new AbortController();
    const asking = fetch(`http://127.0.0.1:${port}/tts-stream`, {
      method: 'POST',
      headers: { authorization: `Bearer ${slow.owner.key}`, 'content-type': 'application/json' },
      body: '{"text":"a"}',
      signal: client.signal,
    });
    await asked.promise;
    client.abort();
    await expect(asking).rejects.toThrow('aborted');
    await released.promise;
    expect(slow.logLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });

  it('can run five syntheses at once', async () => {
    const slots = await Promise.all(
      Array.from({ length: 5 }, () => limits.acquireSlot({ userId: fixture.owner.userId, kind: 'tts' })),
    );
    const sixth = await fixture.call('POST', '/tts-stream', { body: { text: 'a' } });
    expect(sixth).toMatchObject({
      status: 429,
      body: { code: 'TTS_CONCURRENCY_LIMIT', error_code: 'TTS_CONCURRENCY_LIMIT', details: { limit: 5 } },
    });
    expect(sixth.headers['retry-after']).toBeDefined();
    await slots[0]!.release();
    expect((await fixture.call('POST', '/tts-stream', { body: { text: 'a' } })).status).toBe(200);
  });
});

it('GET /tts/languages lists each language once', async () => {
  const { status, body } = await fixture.call('GET', '/tts/languages');
  expect(status).toBe(200);
  const codes = body.data.map(({ language_id: code }: { language_id: string }) => code);
  expect(body.data).toContainEqual({ language_id: 'hi', name: 'Hindi' });
  expect(new Set(codes).size).toBe(codes.length);
});
