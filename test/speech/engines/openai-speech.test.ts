import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { wavHeader } from '../../../media/wav.ts';
import { AudioAnswer } from '../../../speech/engines/openai/audio-answer.ts';
import {
  createOpenAiSynthesisEngine,
  type OpenAiSynthesisOptions,
} from '../../../speech/engines/openai/openai-synthesis-engine.ts';
import type { Clause, Synthesizer } from '../../../speech/synthesizer.ts';
import * as fc from '../../properties.ts';
import { itIsASynthesisEngine } from './synthesizer-conformance.ts';

const API_KEY = 'sk-upstream-0123456789';
const NEVER = new AbortController().signal;
const RATE_HZ = 24_000;
const TEXT = 'Meet Zebulon tomorrow';

interface Asked {
  authorization: string | undefined;
  body: { model: string; input: string; voice: string; response_format: string; speed?: number };
}

type Handler = (response: ServerResponse, asked: Asked) => void;

interface FakeServer extends AsyncDisposable {
  baseUrl: string;
  asked: Asked[];
  listed: number;
}

const open: AsyncDisposable[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((resource) => resource[Symbol.asyncDispose]()));
});

async function serve(handle: Handler, voices: unknown = null): Promise<FakeServer> {
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      fake.listed += 1;
      if (voices === null) response.writeHead(404).end('not found');
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(voices));
      return;
    }
    void new Response(Readable.toWeb(request) as ReadableStream).json().then((body) => {
      const { authorization } = request.headers;
      const one = { authorization, body: body as Asked['body'] };
      fake.asked.push(one);
      handle(response, one);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake: FakeServer = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`,
    asked: [],
    listed: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return fake;
}

async function startServer(handle: Handler, voices: unknown = null): Promise<FakeServer> {
  const server = await serve(handle, voices);
  open.push(server);
  return server;
}

function engineOf({ baseUrl }: Pick<FakeServer, 'baseUrl'>, more: Partial<OpenAiSynthesisOptions> = {}) {
  return createOpenAiSynthesisEngine({
    ...{ baseUrl, apiKey: API_KEY, model: 'tts-1', maxRequests: 4, retryAfterMs: 1 },
    ...more,
  });
}

function start(server: Pick<FakeServer, 'baseUrl'>, more: Partial<OpenAiSynthesisOptions> = {}): Promise<Synthesizer> {
  return engineOf(server, more).start({ model: more.model ?? 'tts-1', signal: NEVER });
}

async function speak(synthesizer: Synthesizer, options: Partial<Clause> = {}, signal = NEVER) {
  const words = TEXT.split(' ').map((word) => ({ written: word, spoken: word, phonemes: null }));
  const usual = { voice: 'alloy', speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
  const samples: number[] = [];
  for await (const block of synthesizer.speak({ words, ...usual, ...options }, signal)) samples.push(...block.samples);
  return samples;
}

/** The samples 1, 2, 3 ... as 16-bit PCM. */
function counted(samples: number): Buffer<ArrayBuffer> {
  return Buffer.from(Int16Array.from({ length: samples }, (_, at) => at + 1).buffer);
}

const COUNTED = Array.from({ length: 1000 }, (_, at) => at + 1);

function answer(response: ServerResponse, body: Buffer, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'audio/pcm', ...headers }).end(body);
}

describe('a speech response', () => {
  it('results from a request with text, voice, model and key', async () => {
    const server = await startServer((response) => answer(response, counted(1000)));
    const words = [
      { written: '$5,', spoken: 'five dollars,', phonemes: null },
      { written: '—', spoken: '', phonemes: null },
      { written: 'Anna\u0007', spoken: 'Anna\u0007', phonemes: 'ˈana' },
    ];
    expect(await speak(await start(server), { words, speed: 1.5, voice: 'nova' })).toEqual(COUNTED);
    expect(server.asked).toEqual([
      {
        authorization: `Bearer ${API_KEY}`,
        body: { model: 'tts-1', voice: 'nova', response_format: 'pcm', input: 'five dollars, Anna', speed: 1.5 },
      },
    ]);
  });

  it('results from a request without key and speed by default', async () => {
    const server = await startServer((response) => answer(response, counted(10)));
    await speak(await start(server, { apiKey: null }));
    expect(server.asked[0]?.authorization).toBeUndefined();
    expect(server.asked[0]?.body).not.toHaveProperty('speed');
  });

  it('streams as it arrives', async () => {
    const first = Promise.withResolvers<void>();
    const server = await startServer((response) => {
      response.writeHead(200, { 'content-type': 'audio/pcm' }).write(counted(6));
      void first.promise.then(() => response.end(counted(1)));
    });
    const synthesizer = await start(server);
    const words = [{ written: 'one', spoken: 'one', phonemes: null }];
    const clause = { words, voice: 'alloy', speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
    const blocks = synthesizer.speak(clause, NEVER)[Symbol.asyncIterator]();
    expect([...(await blocks.next()).value!.samples]).toEqual([1, 2, 3, 4, 5, 6]);
    first.resolve();
    expect([...(await blocks.next()).value!.samples]).toEqual([1]);
    expect((await blocks.next()).done).toBe(true);
  });

  it('resamples a WAV file of another rate', async () => {
    const second = Buffer.from(Int16Array.from({ length: 16_000 }, (_, at) => 8000 * Math.sin(at / 5)).buffer);
    const wav = Buffer.concat([wavHeader({ channels: 1, sampleRateHz: 16_000 }, second.length), second]);
    const server = await startServer((response) => answer(response, wav, { 'content-type': 'audio/wav' }));
    const samples = await speak(await start(server));
    expect(samples.length).toBe(RATE_HZ);
    const expected = (at: number) => 8000 * Math.sin(((at / RATE_HZ) * 16_000) / 5);
    const errors = samples.map((sample, at) => Math.abs(sample - expected(at)));
    expect(Math.max(...errors.slice(500, -500))).toBeLessThan(100);
  });

  it('follows the rate in its content type', async () => {
    const headers = { 'content-type': 'audio/pcm; rate=48000' };
    const server = await startServer((response) => answer(response, counted(4800), headers));
    expect((await speak(await start(server))).length).toBe(2400);
  });

  it('falls back to WAV if PCM is rejected, and starts with WAV from then on', async () => {
    const pcm = counted(1000);
    const server = await startServer((response, { body }) => {
      const wav = Buffer.concat([wavHeader({ channels: 1, sampleRateHz: RATE_HZ }, pcm.length), pcm]);
      if (body.response_format === 'wav') answer(response, wav, { 'content-type': 'audio/x-wav' });
      else response.writeHead(422).end('{"detail": "response_format must be wav or mp3"}');
    });
    const synthesizer = await start(server);
    expect(await speak(synthesizer)).toEqual(COUNTED);
    expect(await speak(synthesizer)).toEqual(COUNTED);
    expect(server.asked.map(({ body }) => body.response_format)).toEqual(['pcm', 'wav', 'wav']);
  });

  it('comes as PCM while another request tries WAV', async () => {
    const waiting = Promise.withResolvers<ServerResponse>();
    const server = await startServer((response, { body }) => {
      if (body.input.startsWith('Meet') && body.response_format === 'pcm') answer(response, counted(1000));
      // The text is the reason, not the format.
      else if (body.input === 'refused' && body.response_format === 'wav') waiting.resolve(response);
      else response.writeHead(400).end();
    });
    const synthesizer = await start(server);
    const words = [{ written: 'refused', spoken: 'refused', phonemes: null }];
    const refused = expect(speak(synthesizer, { words })).rejects.toMatchObject({ code: 'unavailable' });
    const pending = await waiting.promise;
    expect(await speak(synthesizer)).toEqual(COUNTED);
    pending.writeHead(400).end();
    await refused;
  });

  it('without samples yields silence', async () => {
    const server = await startServer((response) => answer(response, Buffer.alloc(1)));
    const samples = await speak(await start(server));
    expect(samples.length).toBeGreaterThan(0);
    expect(samples.every((sample) => sample === 0)).toBe(true);
  });
});

describe('response bytes', () => {
  const pcm = counted(100);
  const extra = Buffer.from('LIST\u0003\u0000\u0000\u0000abc\u0000', 'latin1');
  const wavHeaderOf = (dataBytes: number) => wavHeader({ channels: 1, sampleRateHz: 22_050 }, dataBytes);
  const tagged = (header: Buffer) => Buffer.concat([header.subarray(0, 36), extra, header.subarray(36)]);
  const kinds: Record<string, Buffer> = {
    'bare PCM': pcm,
    'PCM that ends in the middle of a sample': Buffer.concat([pcm, Buffer.of(7)]),
    'a WAV file': Buffer.concat([wavHeaderOf(200), pcm]),
    'a WAV file that does not know its length': Buffer.concat([wavHeaderOf(0xffffffff), pcm]),
    'a WAV file with more behind its samples': Buffer.concat([wavHeaderOf(200), pcm, extra]),
    'a WAV file with more before its samples': Buffer.concat([tagged(wavHeaderOf(200)), pcm]),
  };

  it.each(Object.entries(kinds))('decode to the same samples for any chunks: %s', (_, bytes) => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 300 }), (sizes) => {
        const read = new AudioAnswer({ contentType: 'audio/wav', usualRateHz: RATE_HZ });
        const samples: number[] = [];
        for (let at = 0, cut = 0; at < bytes.length; cut++) {
          const size = sizes[cut % sizes.length]!;
          samples.push(...read.push(bytes.subarray(at, at + size)));
          at += size;
        }
        samples.push(...read.end());
        expect(samples).toEqual(COUNTED.slice(0, 100));
        expect(read.sampleRateHz).toBe(bytes.subarray(0, 4).toString() === 'RIFF' ? 22_050 : RATE_HZ);
      }),
      { numRuns: 50 },
    );
  });

  it('mix two channels to one', () => {
    const stereo = Buffer.from(Int16Array.of(100, 200, -50, 50, 7, 7).buffer);
    const read = new AudioAnswer({ contentType: null, usualRateHz: RATE_HZ });
    const wav = Buffer.concat([wavHeader({ channels: 2, sampleRateHz: RATE_HZ }, stereo.length), stereo]);
    expect([...read.push(wav), ...read.end()]).toEqual([150, 0, 7]);
  });

  it('with any content yield samples or an error, and never more samples than bytes allow', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, isWav) => {
        const read = new AudioAnswer({ contentType: 'audio/wav', usualRateHz: RATE_HZ });
        const start = isWav ? Buffer.from('RIFF\u0000\u0000\u0000\u0000WAVE', 'latin1') : Buffer.alloc(0);
        try {
          const samples = [...read.push(Buffer.concat([start, bytes])), ...read.end()];
          expect(samples.length).toBeLessThanOrEqual((start.length + bytes.length) / 2);
        } catch (error) {
          expect(error).toMatchObject({ name: 'SynthesizerError', code: 'unavailable' });
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a failing speech server', () => {
  const refuse = (status: number, body: string, headers: Record<string, string> = {}): Handler => {
    return (response) => void response.writeHead(status, headers).end(body);
  };
  const json = (code: string) => JSON.stringify({ error: { message: `cannot say ${TEXT} with ${API_KEY}`, code } });
  const partOf = (header: Buffer): Handler => {
    return (response) => answer(response, Buffer.concat([header, counted(10)]), { 'content-type': 'audio/wav' });
  };
  const cases: { what: string; handle: Handler; is: object; requests: number }[] = [
    {
      what: 'a rejected API key',
      handle: refuse(401, json('invalid_api_key')),
      is: { code: 'unavailable', message: expect.stringContaining('(401 invalid_api_key): set TTS_API_KEY') },
      requests: 1,
    },
    {
      what: 'an unknown model',
      handle: refuse(404, json('model_not_found')),
      is: {
        code: 'model',
        message: expect.stringMatching(/tts-1 \(404 model_not_found\).*TTS_BASE_URL and TTS_MODEL/),
      },
      requests: 1,
    },
    {
      what: 'a rate limit',
      handle: refuse(429, json(TEXT)),
      is: { code: 'unavailable', message: 'the speech server limits us (429)' },
      requests: 3,
    },
    {
      what: 'a rate limit with a long Retry-After',
      handle: refuse(429, '', { 'retry-after': '60' }),
      is: { code: 'unavailable' },
      requests: 1,
    },
    {
      what: 'a Retry-After date of tomorrow',
      handle: refuse(503, '', { 'retry-after': new Date(Date.now() + 86_400_000).toUTCString() }),
      is: { code: 'unavailable' },
      requests: 1,
    },
    {
      what: 'a gateway error page',
      handle: refuse(502, `<html>Bad gateway: ${TEXT}</html>`),
      is: { code: 'unavailable', message: 'the speech server failed (502)' },
      requests: 3,
    },
    {
      what: 'a web page with status 200',
      handle: (response) => answer(response, Buffer.from('<html></html>'), { 'content-type': 'text/html' }),
      is: { code: 'unavailable', message: expect.stringContaining('text/html') },
      requests: 1,
    },
    {
      what: 'an MP3 file',
      handle: (response) => answer(response, Buffer.alloc(100), { 'content-type': 'audio/mpeg' }),
      is: { code: 'unavailable', message: expect.stringContaining('audio/mpeg') },
      requests: 1,
    },
    {
      what: 'an MP3 file labelled as PCM',
      handle: (response) => answer(response, Buffer.from(`ID3${'\u0000'.repeat(100)}`)),
      is: { code: 'unavailable', message: expect.stringContaining('neither PCM nor WAV') },
      requests: 1,
    },
    {
      what: 'a WAV file with an impossible rate',
      handle: partOf(wavHeader({ channels: 1, sampleRateHz: 1 }, 20)),
      is: { code: 'unavailable', message: expect.stringContaining('1 samples per second') },
      requests: 1,
    },
    {
      what: 'a truncated WAV file',
      handle: partOf(wavHeader({ channels: 1, sampleRateHz: RATE_HZ }, 1000)),
      is: { code: 'unavailable', message: expect.stringContaining('ends too early') },
      requests: 1,
    },
    {
      what: 'a connection lost during the audio',
      handle: (response) => {
        response.writeHead(200, { 'content-type': 'audio/pcm', 'content-length': '1000' }).write(counted(10));
        setImmediate(() => response.destroy());
      },
      is: { code: 'unavailable' },
      requests: 1,
    },
    {
      what: 'a connection lost before the response',
      handle: (response) => void response.destroy(),
      is: { code: 'unavailable', message: expect.stringContaining('cannot be reached') },
      requests: 3,
    },
    {
      what: 'a redirect',
      handle: refuse(307, '', { location: 'http://127.0.0.1:9/' }),
      is: { code: 'unavailable' },
      requests: 3,
    },
    {
      what: 'a rejected request',
      handle: refuse(400, json('invalid_request_error')),
      is: { code: 'unavailable', message: 'the speech server refuses what it is asked (400 invalid_request_error)' },
      requests: 2,
    },
  ];

  it.each(cases)('maps $what to its error', async ({ handle, is, requests }) => {
    const server = await startServer(handle);
    const failure = await speak(await start(server)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'SynthesizerError', ...is });
    expect(server.asked.length).toBe(requests);
    const { message, stack, cause } = failure as Error;
    const printed = `${message}${stack}${String(cause)}${JSON.stringify(failure)}`;
    expect(printed).not.toContain('Zebulon');
    expect(printed).not.toContain(API_KEY);
  });

  it('receives one retry', async () => {
    const statuses = [503, 500];
    const server = await startServer((response) => {
      const status = statuses.shift();
      if (status === undefined) answer(response, counted(1000));
      else response.writeHead(status).end();
    });
    expect(await speak(await start(server))).toEqual(COUNTED);
    expect(server.asked.length).toBe(3);
  });

  it('fails the clause when it does not start in time', async () => {
    const server = await startServer(() => {});
    const synthesizer = await start(server, { answerWithinMs: 50 });
    const failure = { code: 'unavailable', message: expect.stringContaining('in time') };
    await expect(speak(synthesizer)).rejects.toMatchObject(failure);
    expect(server.asked.length).toBe(1);
  });

  it('fails the clause when it stalls', async () => {
    const server = await startServer((response) => {
      response.writeHead(200, { 'content-type': 'audio/pcm' }).write(counted(10));
    });
    const failure = { code: 'unavailable', message: expect.stringContaining('in time') };
    await expect(speak(await start(server, { answerWithinMs: 50 }))).rejects.toMatchObject(failure);
  });

  it('fails the clause when it never ends', async () => {
    const gone = Promise.withResolvers<void>();
    const server = await startServer((response) => {
      const block = Buffer.alloc(1_000_000);
      const more = (): void => {
        while (!response.destroyed && response.write(block));
      };
      response.on('drain', more).on('close', () => gone.resolve());
      response.writeHead(200, { 'content-type': 'audio/pcm' });
      more();
    });
    const synthesizer = await start(server);
    let samples = 0;
    const words = [{ written: 'one', spoken: 'one', phonemes: null }];
    const clause = { words, voice: 'alloy', speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
    const listen = async () => {
      for await (const block of synthesizer.speak(clause, NEVER)) samples += block.samples.length;
    };
    await expect(listen()).rejects.toMatchObject({ code: 'too_long' });
    expect(samples).toBeLessThan(301 * RATE_HZ);
    await gone.promise;
  });

  it('fails the clause when it refuses the connection', async () => {
    const server = await serve(() => {});
    await server[Symbol.asyncDispose]();
    const failure = { code: 'unavailable', message: expect.stringContaining('ECONNREFUSED') };
    await expect(speak(await start(server))).rejects.toMatchObject(failure);
  });

  it('receives no clause that is too long for it', async () => {
    const server = await startServer((response) => answer(response, counted(10)));
    const words = [{ written: 'x', spoken: 'x'.repeat(5000), phonemes: null }];
    await expect(speak(await start(server), { words })).rejects.toMatchObject({ code: 'too_long' });
    expect(server.asked).toEqual([]);
  });
});

it('closes the connection when aborted', async () => {
  const reached = Promise.withResolvers<ServerResponse>();
  const server = await startServer((response) => {
    response.writeHead(200, { 'content-type': 'audio/pcm' }).write(counted(10));
    reached.resolve(response);
  });
  const synthesizer = await start(server);
  const ended = new AbortController();
  const speaking = speak(synthesizer, {}, ended.signal).catch((error: unknown) => error);
  const response = await reached.promise;
  const gone = once(response, 'close');
  const reason = new Error('gone');
  ended.abort(reason);
  expect(await speaking).toBe(reason);
  await gone;
});

describe('voices of a speech server', () => {
  it('default to those of OpenAI if it lists none, with a single request', async () => {
    const server = await startServer((response) => answer(response, counted(10)));
    const engine = engineOf(server);
    expect(engine).toMatchObject({ name: 'openai', controlsPitch: false, maxInstances: 4 });
    const voices = await engine.voices();
    expect(voices.map(({ name }) => name)).toContain('shimmer');
    expect(voices[0]).toEqual({ name: 'alloy', model: 'tts-1', language: 'en-us', gender: null, clones: false });
    await speak(await engine.start({ model: 'tts-1', signal: NEVER }));
    expect(server.listed).toBe(1);
  });

  it.each([
    ['names', { voices: ['af_bella', 'bm_george', 'af_bella', 'jim', '', 7, '\u0000'] }],
    [
      'objects',
      {
        voices: [
          { id: 'af_bella', name: 'Bella' },
          { voice_id: 'bm_george', gender: 'male', language: 'en_GB' },
          { name: 'jim' },
          {},
          null,
        ],
      },
    ],
  ])('come from its list: %s', async (_, listed) => {
    const engine = engineOf(await startServer((response) => answer(response, counted(10)), listed));
    expect((await engine.voices()).map(({ name, language, gender }) => [name, language, gender])).toEqual([
      ['af_bella', 'en-us', 'female'],
      ['bm_george', 'en-gb', 'male'],
      ['jim', 'en-us', null],
    ]);
  });

  it('stop at a maximum number', async () => {
    const listed = { voices: Array.from({ length: 10_000 }, (_, at) => `voice ${at}`) };
    const engine = engineOf(await startServer(() => {}, listed));
    expect((await engine.voices()).length).toBe(2000);
  });

  it.each([[[]], [{ voices: 'all' }], ['text'], [{ voices: [{ id: 'x'.repeat(1_000_001) }] }]])(
    'default to those of OpenAI if its list is invalid',
    async (listed) => {
      const engine = engineOf(await startServer(() => {}, listed));
      expect((await engine.voices())[0]?.name).toBe('alloy');
    },
  );
});

describe('a fake speech server', () => {
  let server: FakeServer;

  afterAll(() => server[Symbol.asyncDispose]());

  itIsASynthesisEngine({
    name: 'openai',
    async engine() {
      server = await serve((response, { body: { input, speed = 1 } }) => {
        const samples = Math.round((input.length * 1200) / speed);
        const tone = Int16Array.from(
          { length: samples },
          (_, at) => 8000 * Math.sin((2 * Math.PI * 150 * at) / RATE_HZ),
        );
        answer(response, Buffer.from(tone.buffer));
      });
      return engineOf(server);
    },
    text: 'go forward ten meters and then stop.',
    isDeterministic: true,
    hasMarks: false,
    speedTolerance: 0.1,
  });
});
