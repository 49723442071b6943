import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { TRANSCRIPT } from './fake-transcriber.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { AUDIO, type FormPart, field, formOf } from './multipart-body.ts';

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
beforeEach(() => {
  fixture.transcriber.requests.length = 0;
  fixture.transcriber.onTranscribe = () => ({ transcript: TRANSCRIPT, charge: null });
});

const model = 'whisper-1';
const speech = () => toFile(Buffer.from('RIFF'), 'call.wav', { type: 'audio/wav' });

describe('OpenAI transcription client', () => {
  it('receives the text and the duration', async () => {
    expect(await client.audio.transcriptions.create({ file: await speech(), model })).toEqual({
      text: TRANSCRIPT.text,
      usage: { type: 'duration', seconds: 1.5 },
    });
    expect(fixture.transcriber.requests[0]).toMatchObject({
      ...{ fileName: 'call.wav', mediaType: 'audio/wav', languages: null, context: null, includeWords: false },
      ...{ workspaceId: fixture.owner.workspaceId, userId: fixture.owner.userId, plan: 'enterprise' },
    });
  });

  it('sends language, prompt and granularities to the transcriber', async () => {
    const verbose = await client.audio.transcriptions.create({
      ...{ file: await speech(), model: 'pocketsphinx/en-us', language: 'en', prompt: 'A call about a robot.' },
      ...{ response_format: 'verbose_json', temperature: 0.1 + 0.2, timestamp_granularities: ['word', 'segment'] },
    });
    expect(fixture.transcriber.requests[0]).toMatchObject({
      ...{ languages: ['en'], context: 'A call about a robot.', includeWords: true },
    });
    expect(verbose).toMatchObject({
      ...{ task: 'transcribe', language: 'english', duration: 1.5, text: TRANSCRIPT.text },
      words: [{ word: 'go', start: 0.1, end: 0.3 }],
      segments: [{ id: 0, start: 0.1, end: 1.4, text: TRANSCRIPT.text, tokens: [], avg_logprob: 0 }],
    });
  });

  it('receives segments by default, and only words when requested', async () => {
    const file = await speech();
    const asked = { file, model, response_format: 'verbose_json' } as const;
    const plain = await client.audio.transcriptions.create(asked);
    expect([plain.segments?.length, plain.words]).toEqual([1, undefined]);
    const words = await client.audio.transcriptions.create({ ...asked, timestamp_granularities: ['word'] });
    expect([words.segments, words.words?.length]).toEqual([undefined, 1]);
  });

  it('receives plain text and subtitles as text', async () => {
    const file = await speech();
    const as = async (response_format: 'text' | 'srt' | 'vtt') => {
      const { data, response } = await client.audio.transcriptions
        .create({ file, model, response_format })
        .withResponse();
      return [response.headers.get('content-type'), data];
    };
    expect(await as('text')).toEqual(['text/plain; charset=utf-8', `${TRANSCRIPT.text}\n`]);
    const times = '00:00:00,100 --> 00:00:01,400';
    expect(await as('srt')).toEqual(['application/x-subrip; charset=utf-8', `1\n${times}\n${TRANSCRIPT.text}\n`]);
    const cue = `WEBVTT\n\n${times.replaceAll(',', '.')}\n${TRANSCRIPT.text}\n`;
    expect(await as('vtt')).toEqual(['text/vtt; charset=utf-8', cue]);
  });

  it('reads the charge from the headers', async () => {
    const charge = { entryId: 'entry-1', chargedNano: 162_000n, balanceAfterNano: 5_000_000_000n };
    fixture.transcriber.onTranscribe = () => ({ transcript: TRANSCRIPT, charge });
    const { response } = await client.audio.transcriptions.create({ file: await speech(), model }).withResponse();
    expect(response.headers.get('x-credit-charged')).toBe('0.000162');
  });

  it('throws the matching error for each rejection', async () => {
    const create = async (more: object = {}, by = client) =>
      await by.audio.transcriptions.create({ file: await speech(), model, ...more });
    await expect(create({ temperature: 2 })).rejects.toMatchObject({
      ...{ status: 400, code: 'VALIDATION_FAILED', param: 'temperature', type: 'invalid_request_error' },
    });
    await expect(create({ language: 'tlh' })).rejects.toMatchObject({ status: 400, code: 'unsupported_language' });
    await expect(create({ model: 'svc-tiny' })).rejects.toMatchObject({ status: 404, code: 'MODEL_NOT_FOUND' });
    await expect(create({}, clientOf('sk_wrong'))).rejects.toThrow(OpenAI.AuthenticationError);
    const viewer = await fixture.addMemberWith('viewer');
    await expect(create({}, clientOf(viewer.key))).rejects.toThrow(OpenAI.PermissionDeniedError);
    expect(fixture.transcriber.requests).toEqual([]);
    fixture.transcriber.onTranscribe = () => {
      throw new TandemError('ZERO_BALANCE', 'The wallet is empty. Top up the wallet.');
    };
    await expect(create()).rejects.toMatchObject({ status: 402, code: 'ZERO_BALANCE', type: 'insufficient_quota' });
  });
});

describe('POST /v1/audio/transcriptions', () => {
  const post = (parts: readonly FormPart[]) => {
    const { body, headers } = formOf(parts);
    return fixture.call('POST', '/v1/audio/transcriptions', { body, headers });
  };

  it.each<[string, FormPart[], string]>([
    ['a missing file', [], 'file is required.'],
    ['an unknown field', [AUDIO, field('diarize', 'true')], 'diarize is not a known field.'],
    [
      'an unknown format',
      [AUDIO, field('response_format', 'diarized_json')],
      'response_format must be one of json, text, verbose_json, srt, vtt.',
    ],
    [
      'an unknown granularity',
      [AUDIO, field('response_format', 'verbose_json'), field('timestamp_granularities[]', 'letter')],
      'timestamp_granularities[] must be one of word, segment.',
    ],
    [
      'granularities without verbose_json',
      [AUDIO, field('timestamp_granularities', 'word')],
      'timestamp_granularities requires response_format=verbose_json.',
    ],
    [
      'a stream',
      [AUDIO, field('stream', 'true')],
      'stream must be false. Use the WebSocket /ws/stt to receive text while it is spoken.',
    ],
    ['a long prompt', [AUDIO, field('prompt', 'x'.repeat(8001))], 'prompt must be at most 8000 characters.'],
  ])('rejects %s', async (_what, parts, message) => {
    const { status, body } = await post(parts);
    expect([status, body.code, body.error.message, body.message]).toEqual([400, 'VALIDATION_FAILED', message, message]);
    expect(fixture.transcriber.requests).toEqual([]);
  });

  it('rejects a body that is not a form', async () => {
    const { status, body } = await fixture.call('POST', '/v1/audio/transcriptions', { body: { model } });
    expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  });
});
