import { readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { eventually } from '../eventually.ts';
import { TRANSCRIPT } from './fake-transcriber.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';

/** Bodies of POST /stt other than forms. */

const LIMIT_BYTES = 25 * 2 ** 20;
const EXPECTED = 'Send multipart/form-data, the audio itself as audio/*, or application/json with a url.';

let fixture: HttpFixture;
let url: string;
let stored: { bytes: Buffer; mode: number };
beforeAll(async () => {
  fixture = await createHttpFixture();
  url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  const { transcriber } = fixture;
  for (const list of [transcriber.requests, transcriber.begun, transcriber.downloads]) list.length = 0;
  transcriber.ended = 0;
  transcriber.onDownload = () => undefined;
  transcriber.onTranscribe = (_request, { uploadPath }) => {
    if (transcriber.downloads.length === 0) {
      stored = { bytes: readFileSync(uploadPath), mode: statSync(uploadPath).mode & 0o777 };
    }
    return { transcript: TRANSCRIPT, charge: null };
  };
});

async function nothingRemains(): Promise<void> {
  const { transcriber } = fixture;
  await eventually(() => expect(transcriber.ended).toBe(transcriber.begun.length));
}

describe.each(['/stt', '/v1/transcribe'])('audio as the body of POST %s', (path) => {
  const post = (body: Buffer, { query = '', type = 'audio/wav' } = {}) =>
    fixture.call('POST', `${path}?${query}`, { body, headers: { 'content-type': type } });

  it('becomes a transcript with the options of the query', async () => {
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 31) % 256));
    const query = 'language=en-IN&diarize=true&max_speakers=3&keywords=Tandem:3&keywords=SIP&return_timestamps=word';
    const { status, body } = await post(bytes, { query, type: 'audio/x-wav; codec=pcm' });
    expect([status, body.text]).toEqual([200, TRANSCRIPT.text]);
    expect(stored.bytes.equals(bytes)).toBe(true);
    expect(stored.mode).toBe(0o600);
    expect(fixture.transcriber.requests[0]).toMatchObject({
      ...{ workspaceId: fixture.owner.workspaceId, fileName: null, mediaType: 'audio/x-wav' },
      ...{ languages: ['en'], diarize: true, maxSpeakers: 3, includeWords: true },
      keywords: [
        { term: 'Tandem', weight: 3 },
        { term: 'SIP', weight: 1 },
      ],
    });
    await nothingRemains();
  });

  it.each(['audio/basic', 'AUDIO/MPEG', 'video/mp4', 'application/ogg', 'application/octet-stream'])(
    'accepts the type %s',
    async (type) => {
      expect((await post(Buffer.from('RIFF'), { type })).status).toBe(200);
    },
  );

  it.each([
    ['lang=en', /^lang is not a known query parameter\./],
    ['file=x', /^file is not a known query parameter\./],
    ['diarize=perhaps', /^diarize must be true or false\.$/],
    ['language=en&language=hi', /^language must be sent only once\.$/],
  ])('fails with the query %s', async (query, message) => {
    const { status, body } = await post(Buffer.from('RIFF'), { query });
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.message).toMatch(message);
    expect(fixture.transcriber.requests).toEqual([]);
    await nothingRemains();
  });

  it('fails with another type', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'image/png']) {
      const { status, body } = await post(Buffer.from('RIFF'), { type });
      expect([status, body.code, body.message]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE', EXPECTED]);
    }
    expect((await fixture.call('POST', path)).body.message).toBe(EXPECTED);
  });
});

describe('large audio body', () => {
  const send = (body: Buffer | ReadableStream) =>
    fetch(`${url}/stt`, {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { authorization: `Bearer ${fixture.owner.key}`, 'content-type': 'audio/wav' },
    } as RequestInit);

  it('succeeds up to 25 MB', async () => {
    expect((await send(Buffer.alloc(LIMIT_BYTES))).status).toBe(200);
    expect(stored.bytes.length).toBe(LIMIT_BYTES);
  });

  it('fails beyond 25 MB, with or without a declared length', async () => {
    const known = await send(Buffer.alloc(LIMIT_BYTES + 1));
    expect([known.status, ((await known.json()) as { code: string }).code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const chunks = new ReadableStream({
      start(controller) {
        for (let sent = 0; sent < 30; sent += 1) controller.enqueue(new Uint8Array(2 ** 20));
        controller.close();
      },
    });
    const unknown = await send(chunks);
    expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    await nothingRemains();
    expect(fixture.transcriber.requests).toEqual([]);
  });

  it('leaves nothing behind when the client disconnects midway', async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(
      `POST /stt HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${fixture.owner.key}\r\n` +
        'content-type: audio/wav\r\ncontent-length: 200000\r\n\r\n',
    );
    socket.write(Buffer.alloc(100_000));
    await eventually(() => expect(fixture.transcriber.begun).toHaveLength(1));
    socket.destroy();
    await nothingRemains();
    expect(fixture.transcriber.requests).toEqual([]);
  });
});

describe('POST /stt with JSON and a url', () => {
  const post = (body: unknown) => fixture.call('POST', '/stt', { body });

  it('fetches the audio and transcribes it with the options of the body', async () => {
    const source = 'https://files.example.com/call.mp3';
    const options = { language: 'hi', diarize: true, min_split_sec: 7.5, keywords: ['Tandem:3', 'SIP'], context: null };
    const { status, body } = await post({ url: source, ...options });
    expect([status, body.text]).toEqual([200, TRANSCRIPT.text]);
    expect(fixture.transcriber.downloads).toEqual([source]);
    expect(fixture.transcriber.requests[0]).toMatchObject({
      ...{ fileName: 'call.mp3', mediaType: 'audio/mpeg', languages: ['hi'], diarize: true, minSplitMs: 7_500 },
      ...{ context: null, keywords: [{ term: 'Tandem' }, { term: 'SIP' }] },
    });
    await nothingRemains();
  });

  it('takes each item of an array of keywords as one term', async () => {
    const keywords = ['Washington, D.C.:2', '[sic]', 7];
    const { status } = await post({ url: 'https://files.example.com/call.mp3', keywords });
    expect(status).toBe(200);
    expect(fixture.transcriber.requests[0]?.keywords).toEqual([
      { term: 'Washington, D.C.', weight: 2 },
      { term: '[sic]', weight: 1 },
      { term: '7', weight: 1 },
    ]);
  });

  it('accepts the workspace of a session', async () => {
    const { owner } = fixture;
    const headers = { authorization: `Bearer ${await sessionOf(fixture, owner)}` };
    const body = { url: 'https://files.example.com/a.wav', workspace_id: owner.workspaceId };
    expect((await fixture.call('POST', '/stt', { as: null, headers, body })).status).toBe(200);
    expect(fixture.transcriber.requests[0]?.workspaceId).toBe(owner.workspaceId);
  });

  it.each<[unknown, string]>([
    [{}, 'url is required.'],
    [{ url: null }, 'url is required.'],
    [{ url: ['https://a.example'] }, 'url must be sent only once.'],
    [{ url: 'https://a.example', file: 'x' }, 'file is not a known field.'],
    [{ url: 'https://a.example', keywords: [{ term: 'a' }] }, 'keywords must be an array of strings.'],
    [{ url: 'https://a.example', diarize: {} }, 'diarize must be a string, a number or a boolean.'],
    ['"a"', 'body must be a JSON object.'],
    ['[]', 'body must be a JSON object.'],
  ])('rejects %j before fetching anything', async (body, message) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fixture.call('POST', '/stt', { body, headers });
    expect([answer.status, answer.body.code, answer.body.message]).toEqual([400, 'VALIDATION_FAILED', message]);
    expect(fixture.transcriber.downloads).toEqual([]);
    await nothingRemains();
  });

  it('reports why fetching failed', async () => {
    for (const [code, status] of [
      ['INVALID_AUDIO_URL', 400],
      ['AUDIO_URL_UNREACHABLE', 422],
    ] as const) {
      fixture.transcriber.onDownload = () => {
        throw new TandemError(code, 'No.');
      };
      expect(await post({ url: 'https://a.example' })).toMatchObject({ status, body: { code } });
    }
    expect(fixture.transcriber.requests).toEqual([]);
    await nothingRemains();
  });

  it('rejects malformed JSON', async () => {
    const headers = { 'content-type': 'application/json' };
    const { status, body } = await fixture.call('POST', '/stt', { body: '{"url":', headers });
    expect([status, body.code]).toEqual([400, 'MALFORMED_JSON']);
  });
});
