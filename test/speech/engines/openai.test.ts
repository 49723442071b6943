import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createOpenAiEngine, type OpenAiEngineOptions } from '../../../speech/engines/openai/openai-engine.ts';
import type { Recognizer, UtteranceOptions } from '../../../speech/recognizer.ts';
import { itIsARecognizer, PAUSE_SAMPLES } from '../recognizer-conformance.ts';

const API_KEY = 'sk-upstream-0123456789';
const UTTERANCE: UtteranceOptions = { language: null, keywords: [], isLive: false };
const SECOND = 16_000;

interface Asked {
  url: string | undefined;
  authorization: string | undefined;
  organization: string | string[] | undefined;
  form: FormData;
}

type Handler = (response: ServerResponse, asked: Asked) => void;

const open: AsyncDisposable[] = [];
let conformanceServer: AsyncDisposable | undefined;

afterAll(() => conformanceServer?.[Symbol.asyncDispose]());

afterEach(async () => {
  await Promise.all(open.splice(0).map((resource) => resource[Symbol.asyncDispose]()));
});

async function startServer(handle: Handler): Promise<{ baseUrl: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void readForm(request).then((form) => {
      const { authorization, 'openai-organization': organization } = request.headers;
      const one = { url: request.url, authorization, organization, form };
      asked.push(one);
      handle(response, one);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push({
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, asked };
}

async function readForm(request: IncomingMessage): Promise<FormData> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = { 'content-type': request.headers['content-type'] ?? '' };
  return await new Response(Buffer.concat(chunks), { headers }).formData();
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

async function recognizerFor(baseUrl: string, more: Partial<OpenAiEngineOptions> = {}): Promise<Recognizer> {
  const engine = createOpenAiEngine({ baseUrl, apiKey: API_KEY, model: 'whisper-1', maxRequests: 4, ...more });
  const [description] = await engine.describe();
  const recognizer = await engine.load(description!);
  open.push({ [Symbol.asyncDispose]: () => recognizer.close() });
  return recognizer;
}

async function recognise(recognizer: Recognizer, options: UtteranceOptions = UTTERANCE, seconds = 2) {
  await recognizer.begin(options);
  for (let second = 0; second < seconds; second++) await recognizer.write(new Int16Array(SECOND).fill(second + 1));
  return await recognizer.finish();
}

describe('a verbose transcription', () => {
  const verbose = {
    text: ' Go forward. Ten meters.',
    language: 'english',
    duration: 2,
    words: [
      { word: ' Go', start: 0.1, end: 0.3 },
      { word: ' forward.', start: 0.3, end: 0.8 },
      { word: 'Ten', start: 1.1, end: 1.3, probability: 0.25 },
      { word: 'meters.', start: 1.3, end: 99 },
      { word: ' ', start: 2, end: 2 },
    ],
    segments: [
      { id: 0, text: ' Go forward.', start: 0, end: 1, avg_logprob: Math.log(0.8), no_speech_prob: 0.1 },
      { id: 1, text: ' Ten meters.', start: 1, end: 2, avg_logprob: Math.log(0.5) },
    ],
  };

  it('contains text, language, and words with times and confidence', async () => {
    const { baseUrl } = await startServer((response) => json(response, 200, verbose));
    const recognition = await recognise(await recognizerFor(baseUrl));
    const common = { speaker: null, original: null };
    expect(recognition).toMatchObject({
      text: 'Go forward. Ten meters.',
      language: 'en',
      languageProbability: null,
      model: 'openai/whisper-1',
      words: [
        { word: 'Go', startMs: 100, endMs: 300, confidence: expect.closeTo(0.8), ...common },
        { word: 'forward.', startMs: 300, endMs: 800, confidence: expect.closeTo(0.8), ...common },
        { word: 'Ten', startMs: 1100, endMs: 1300, confidence: 0.25, ...common },
        { word: 'meters.', startMs: 1300, endMs: 2000, confidence: expect.closeTo(0.5), ...common },
      ],
    });
    expect(recognition.confidence).toBeCloseTo((0.8 + 0.8 + 0.25 + 0.5) / 4);
  });

  it.each([
    ['bengali', 'bn'],
    ['tagalog', 'tl'],
    ['myanmar', 'my'],
    ['haitian creole', 'ht'],
    ['<|hi|>', 'hi'],
  ])('reports the language that Whisper calls %s as %s', async (language, code) => {
    const { baseUrl } = await startServer((response) => json(response, 200, { ...verbose, language }));
    expect((await recognise(await recognizerFor(baseUrl))).language).toBe(code);
  });

  it('results from a request with the utterance as WAV, language and keywords', async () => {
    const { baseUrl, asked } = await startServer((response) => json(response, 200, verbose));
    const keywords = [
      { term: 'Qcall', weight: 3 },
      { term: 'tandem', weight: 1 },
      { term: 'nothing', weight: 0 },
    ];
    await recognise(await recognizerFor(baseUrl), { language: 'en', keywords, isLive: true });
    const [{ url, authorization, form }] = asked as [Asked];
    expect(url).toBe('/v1/audio/transcriptions');
    expect(authorization).toBe(`Bearer ${API_KEY}`);
    expect(Object.fromEntries([...form].filter(([name]) => name !== 'file'))).toEqual({
      model: 'whisper-1',
      language: 'en',
      prompt: 'tandem, Qcall',
      response_format: 'verbose_json',
      'timestamp_granularities[]': 'segment',
    });
    expect(form.getAll('timestamp_granularities[]')).toEqual(['word', 'segment']);
    const wav = Buffer.from(await (form.get('file') as File).arrayBuffer());
    expect(wav.subarray(0, 4).toString()).toBe('RIFF');
    expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
    expect(wav.readUInt32LE(24)).toBe(SECOND);
    const samples = new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length));
    expect(samples).toEqual(Int16Array.from({ length: 2 * SECOND }, (_, at) => 1 + Math.floor(at / SECOND)));
  });

  it('marks boosted words by a second request without the prompt', async () => {
    const { baseUrl, asked } = await startServer((response, { form }) =>
      json(response, 200, { text: `Go forward ${form.has('prompt') ? 'Tandem' : 'random'} meters.` }),
    );
    const recognizer = await recognizerFor(baseUrl);
    const keywords = ['tandem', 'meters'].map((term) => ({ term, weight: 1 }));
    const { text, words } = await recognise(recognizer, { ...UTTERANCE, keywords });
    expect(text).toBe('Go forward Tandem meters.');
    expect(words.map(({ word, original }) => [word, original])).toEqual([
      ['Go', null],
      ['forward', null],
      ['Tandem', 'random'],
      ['meters.', null],
    ]);
    expect(asked.map(({ form }) => form.has('prompt'))).toEqual([true, false]);
    await recognise(recognizer, { ...UTTERANCE, keywords: [{ term: 'robot', weight: 1 }] });
    expect(asked).toHaveLength(3);
  });

  it('keeps the text if the second request fails', async () => {
    const { baseUrl } = await startServer((response, { form }) =>
      form.has('prompt') ? json(response, 200, { text: 'tandem' }) : json(response, 429, {}),
    );
    const keywords = [{ term: 'tandem', weight: 1 }];
    const { words } = await recognise(await recognizerFor(baseUrl), { ...UTTERANCE, keywords });
    expect(words).toMatchObject([{ word: 'tandem', original: null }]);
  });

  it('marks boosted words if the first request took long', async () => {
    const { baseUrl } = await startServer((response, { form }) => {
      json(response, 200, { text: form.has('prompt') ? 'tandem' : 'random' });
    });
    const recognizer = await recognizerFor(baseUrl);
    let nowMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      nowMs += 700 + 1 / 128;
      return nowMs;
    });
    onTestFinished(() => clock.mockRestore());
    const keywords = [{ term: 'tandem', weight: 1 }];
    const { words } = await recognise(recognizer, { ...UTTERANCE, keywords });
    expect(words).toMatchObject([{ word: 'tandem', original: 'random' }]);
  });

  it('waits only briefly for the second request', async () => {
    const { baseUrl } = await startServer((response, { form }) => {
      if (form.has('prompt')) json(response, 200, { text: 'tandem' });
    });
    const keywords = [{ term: 'tandem', weight: 1 }];
    const { words } = await recognise(await recognizerFor(baseUrl), { ...UTTERANCE, keywords });
    expect(words).toMatchObject([{ word: 'tandem', original: null }]);
  });

  it('results from a request without language and prompt by default', async () => {
    const { baseUrl, asked } = await startServer((response) => json(response, 200, verbose));
    await recognise(await recognizerFor(baseUrl, { apiKey: null }));
    expect(asked[0]!.form.has('language')).toBe(false);
    expect(asked[0]!.form.has('prompt')).toBe(false);
    expect(asked[0]!.authorization).toBeUndefined();
  });

  it('estimates word times from its segments if it has no words', async () => {
    const { baseUrl } = await startServer((response) => json(response, 200, { ...verbose, words: null }));
    const { words } = await recognise(await recognizerFor(baseUrl));
    expect(words.map(({ word, startMs }) => [word, startMs])).toEqual([
      ['Go', 0],
      ['forward.', 222],
      ['Ten', 1000],
      ['meters.', 1333],
    ]);
  });
});

it('falls back to plain JSON if words are rejected, and starts with it from then on', async () => {
  const { baseUrl, asked } = await startServer((response, { form }) => {
    if (form.get('response_format') === 'json') json(response, 200, { text: 'hello world' });
    else json(response, 400, { error: { message: 'response_format verbose_json is not compatible with model' } });
  });
  const recognizer = await recognizerFor(baseUrl, { languages: ['de', 'en'] });
  const recognition = await recognise(recognizer);
  expect(recognition).toMatchObject({ text: 'hello world', language: 'de', confidence: null });
  expect(recognition.words.map(({ word, startMs, endMs }) => [word, startMs, endMs])).toEqual([
    ['hello', 0, 1000],
    ['world', 1000, 2000],
  ]);
  await recognise(recognizer);
  expect(asked.map(({ form }) => form.get('response_format'))).toEqual(['verbose_json', 'json', 'json']);
});

it('sends no request for an utterance that is too short', async () => {
  const { baseUrl, asked } = await startServer((response) => json(response, 500, {}));
  const recognizer = await recognizerFor(baseUrl);
  await recognizer.begin({ ...UTTERANCE, language: 'en' });
  await recognizer.write(new Int16Array(800));
  expect(await recognizer.finish()).toMatchObject({ text: '', words: [], language: 'en' });
  expect(asked).toEqual([]);
});

it('rejects unsupported languages and oversized utterances', async () => {
  const recognizer = await recognizerFor('http://127.0.0.1:9/v1', { languages: ['en'] });
  const begun = recognizer.begin({ ...UTTERANCE, language: 'fr' });
  await expect(begun).rejects.toMatchObject({ code: 'unsupported_language' });
  await recognizer.begin(UTTERANCE);
  await recognizer.write(new Int16Array(11_000_000));
  const written = recognizer.write(new Int16Array(2_000_000));
  await expect(written).rejects.toMatchObject({ code: 'unavailable', retryable: false });
});

/** Identifies utterances by length, so that truncated audio would not match. */
const SPOKEN = [
  { samples: new Int16Array(3 * SECOND).fill(1000), text: 'go forward ten meters', language: 'en' },
  { samples: new Int16Array(SECOND + 7).fill(500), text: 'allo', language: 'fr' },
];

async function transcribe(response: ServerResponse, { form }: Asked): Promise<void> {
  const wav = Buffer.from(await (form.get('file') as File).arrayBuffer());
  const samples = (wav.length - 44) / 2;
  const once = SPOKEN.find((spoken) => spoken.samples.length === samples);
  const twice = SPOKEN.find((spoken) => 2 * spoken.samples.length + PAUSE_SAMPLES === samples);
  const words = [
    ...(once === undefined ? [] : wordsOf(once, 0)),
    ...(twice === undefined ? [] : [...wordsOf(twice, 0), ...wordsOf(twice, twice.samples.length + PAUSE_SAMPLES)]),
  ];
  json(response, 200, { text: words.map(({ word }) => word).join(' '), words });
}

/** Evenly over the utterance, which begins at a sample. */
function wordsOf({ samples, text }: (typeof SPOKEN)[number], atSample: number) {
  const words = text.split(' ');
  const each = samples.length / SECOND / words.length;
  const start = atSample / SECOND;
  return words.map((word, index) => ({
    ...{ word, start: start + index * each, end: start + (index + 1) * each },
    probability: 0.5,
  }));
}

itIsARecognizer({
  name: 'openai',
  async load() {
    const { baseUrl } = await startServer((response, asked) => void transcribe(response, asked));
    // One server for all tests of the suite.
    conformanceServer = open.pop();
    const engine = createOpenAiEngine({ baseUrl, apiKey: API_KEY, model: 'whisper-1', maxRequests: 1 });
    return await engine.load((await engine.describe())[0]!);
  },
  spoken: SPOKEN,
  mostWordErrorRate: 0.01,
  unknownLanguage: 'xx',
});

describe('a failing transcription server', () => {
  const inAMinute = () => new Date(Date.now() + 60_000).toUTCString();
  const cases: { what: string; handle: Handler; is: object }[] = [
    {
      what: 'a rate limit with Retry-After, which wins over the body,',
      handle: (response) =>
        json(response, 429, { error: { message: 'slow down', retry_after: 99 } }, { 'retry-after': '7' }),
      is: { code: 'rate_limited', retryable: true, retryAfterS: 7 },
    },
    {
      what: 'a rate limit with a date',
      handle: (response) => json(response, 429, { error: { message: 'x' } }, { 'retry-after': inAMinute() }),
      is: { code: 'rate_limited', retryAfterS: expect.closeTo(60, -1) },
    },
    {
      what: 'a rate limit with seconds in the body',
      handle: (response) => json(response, 429, { error: { message: 'x', retry_after: 3 } }),
      is: { code: 'rate_limited', retryAfterS: 3 },
    },
    {
      what: 'a rate limit without a valid time',
      handle: (response) => json(response, 429, { error: 'x' }, { 'retry-after': 'soon' }),
      is: { code: 'rate_limited', retryAfterS: null },
    },
    {
      what: 'an internal error',
      handle: (response) =>
        json(response, 500, { error: { message: 'out of memory', param: 'a phrase of the caller' } }),
      is: { code: 'unavailable', retryable: true, message: 'the transcription server failed (500)' },
    },
    {
      what: 'a restart with Retry-After',
      handle: (response) => json(response, 503, {}, { 'retry-after': '5' }),
      is: { code: 'unavailable', retryable: true, retryAfterS: 5 },
    },
    {
      what: 'a rejected API key that it echoes',
      handle: (response) => json(response, 401, { error: { message: `Incorrect API key provided: ${API_KEY}` } }),
      is: { code: 'unavailable', retryable: false, message: 'the transcription server refuses (401)' },
    },
    {
      what: 'an unknown model',
      handle: (response) => json(response, 404, { error: { message: 'no model whisper-1', code: 'model_not_found' } }),
      is: { code: 'unavailable', retryable: false, message: 'the transcription server refuses (404 model_not_found)' },
    },
    {
      what: 'truncated JSON',
      handle: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"text": "hal'),
      is: { code: 'unavailable', retryable: true },
    },
    {
      what: 'a web page',
      handle: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>'),
      is: { code: 'unavailable', retryable: true, message: expect.stringContaining('invalid transcription') },
    },
    {
      what: 'invalid word times',
      handle: (response) => json(response, 200, { text: 'a', words: [{ word: 'a', start: 'now', end: 1 }] }),
      is: { code: 'unavailable' },
    },
    {
      what: 'an oversized response',
      handle: (response) => json(response, 200, { text: 'x'.repeat(5_000_000) }),
      is: { code: 'unavailable', message: expect.stringContaining('longer than') },
    },
    {
      what: 'a dropped connection',
      handle: (response) => response.destroy(),
      is: { code: 'unavailable', retryable: true },
    },
    {
      what: 'a redirect',
      handle: (response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
      is: { code: 'unavailable' },
    },
  ];

  it.each(cases)('maps $what to its error', async ({ handle, is }) => {
    const { baseUrl } = await startServer(handle);
    const failure = await recognise(await recognizerFor(baseUrl)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'RecognizerError', ...is });
    const { message, stack, cause } = failure as Error;
    expect(`${message}${stack}${String(cause)}${JSON.stringify(failure)}`).not.toContain(API_KEY);
  });

  it.each([200, 307, 400, 401, 404, 429, 500, 503])('leaks no response text with status %s', async (status) => {
    const said = 'the caller likes tulips';
    const error = { message: said, type: said, param: said, code: said, details: { said }, retry_after: said };
    for (const body of [JSON.stringify({ error, detail: said, text: 7 }), `{"text": "${said}`, said]) {
      const { baseUrl } = await startServer((response) => response.writeHead(status, said).end(body));
      const failure = await recognise(await recognizerFor(baseUrl)).catch((error: unknown) => error);
      expect(failure).toMatchObject({ name: 'RecognizerError' });
      const { message, stack, cause } = failure as Error;
      expect(`${message}${stack}${String(cause)}${JSON.stringify(failure)}`).not.toContain('tulips');
    }
  });

  it('fails the utterance when it refuses the connection', async () => {
    const { baseUrl } = await startServer(() => {});
    await open.pop()![Symbol.asyncDispose]();
    const failure = { code: 'unavailable', retryable: true, message: expect.stringContaining('ECONNREFUSED') };
    await expect(recognise(await recognizerFor(baseUrl))).rejects.toMatchObject(failure);
  });

  it('fails the utterance when it exceeds the timeout', async () => {
    const { baseUrl } = await startServer((response) => response.writeHead(200).write('{'));
    const recognizer = await recognizerFor(baseUrl, { answerWithinMs: 50 });
    await expect(recognise(recognizer)).rejects.toMatchObject({ code: 'unavailable', retryable: true });
  });

  it('serves the next utterance', async () => {
    const answers = [500, 200];
    const { baseUrl } = await startServer((response) => json(response, answers.shift()!, { text: 'hello' }));
    const recognizer = await recognizerFor(baseUrl);
    await expect(recognise(recognizer)).rejects.toMatchObject({ code: 'unavailable' });
    expect((await recognise(recognizer)).text).toBe('hello');
  });
});

it('closes the connection when an utterance is cancelled', async () => {
  const reached = Promise.withResolvers<ServerResponse>();
  const { baseUrl } = await startServer((response) => reached.resolve(response));
  const recognizer = await recognizerFor(baseUrl);
  const finishing = recognise(recognizer).catch((error: unknown) => error);
  const response = await reached.promise;
  const gone = once(response, 'close');
  await recognizer.cancel();
  expect(await finishing).toMatchObject({ code: 'cancelled' });
  await gone;
  await recognizer.cancel();
  await expect(recognizer.finish()).rejects.toMatchObject({ code: 'cancelled' });
});

it('ignores environment variables of the OpenAI SDK', async () => {
  process.env.OPENAI_ORG_ID = 'org-of-somebody';
  try {
    const { baseUrl, asked } = await startServer((response) => json(response, 200, { text: 'x' }));
    const engine = createOpenAiEngine({ baseUrl, apiKey: null, model: 'm', maxRequests: 2 });
    expect(engine.maxInstances).toBe(2);
    expect(await engine.describe()).toMatchObject([{ engine: 'openai', model: 'm', streams: false }]);
    const recognizer = await engine.load((await engine.describe())[0]!);
    expect((await recognise(recognizer)).text).toBe('x');
    expect(asked[0]).toMatchObject({ authorization: undefined, organization: undefined });
  } finally {
    delete process.env.OPENAI_ORG_ID;
  }
});
