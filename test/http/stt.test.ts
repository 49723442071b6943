import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { eventually } from '../eventually.ts';
import { TRANSCRIPT } from './fake-transcriber.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';
import { AUDIO, type FormPart, field, formOf } from './multipart-body.ts';

let fixture: HttpFixture;
let url: string;
beforeAll(async () => {
  fixture = await createHttpFixture({ bodyTimeoutMs: 100 });
  url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  const { transcriber } = fixture;
  transcriber.requests.length = 0;
  transcriber.begun.length = 0;
  transcriber.ended = 0;
  transcriber.onBegin = () => undefined;
  transcriber.onTranscribe = () => ({ transcript: TRANSCRIPT, charge: null });
});

function post(parts: readonly FormPart[], more: { path?: string; as?: Member | null; headers?: object } = {}) {
  const { path = '/stt', as, headers = {} } = more;
  const form = formOf(parts);
  return fixture.call('POST', path, {
    ...(as !== undefined && { as }),
    body: form.body,
    headers: { ...form.headers, ...headers },
  });
}

async function nothingRemains(): Promise<void> {
  const { transcriber } = fixture;
  await eventually(() => expect(transcriber.ended).toBe(transcriber.begun.length));
}

describe('POST /stt', () => {
  it('returns a flat body with the request id, at both addresses', async () => {
    for (const path of ['/stt', '/v1/transcribe']) {
      const { status, body, headers } = await post([AUDIO], { path });
      expect(status).toBe(200);
      expect(body).toEqual({ success: true, request_id: headers['x-request-id'], ...TRANSCRIPT });
      expect(headers).not.toHaveProperty('x-billing-tx');
    }
    expect(fixture.transcriber.begun.map(({ userId }) => userId)).toEqual([fixture.owner.userId, fixture.owner.userId]);
    await nothingRemains();
  });

  it('returns three billing headers when it charges', async () => {
    const charge = { entryId: 'entry-1', chargedNano: 162_000n, balanceAfterNano: 5_000_000_000n };
    fixture.transcriber.onTranscribe = () => ({ transcript: TRANSCRIPT, charge });
    const { headers } = await post([AUDIO]);
    expect(headers).toMatchObject({
      'x-credit-balance': '5',
      'x-credit-charged': '0.000162',
      'x-billing-tx': 'entry-1',
    });
  });

  it('passes all fields in any order, and the unchanged bytes of the file', async () => {
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 31) % 256));
    let stored = Buffer.alloc(0);
    let mode = 0;
    fixture.transcriber.onTranscribe = (_request, { uploadPath }) => {
      stored = readFileSync(uploadPath);
      mode = statSync(uploadPath).mode & 0o777;
      return { transcript: TRANSCRIPT, charge: null };
    };
    await post([
      field('language', 'hi'),
      field('diarize', 'true'),
      field('keywords', 'Tandem:3, click to call ,10:30am'),
      { name: 'file', value: bytes, filename: 'call 1.ulaw', type: 'audio/basic' },
      field('min_speakers', '2'),
      field('max_speakers', '3'),
      field('context', 'A call about a parcel.'),
      field('return_timestamps', 'word'),
      field('include_confidence', '1'),
      field('script_correction', 'true'),
      field('min_split_sec', '7.5'),
    ]);
    expect(stored.equals(bytes)).toBe(true);
    expect(mode).toBe(0o600);
    const { uploadPath, ...request } = fixture.transcriber.requests[0]!;
    expect(request).toEqual({
      workspaceId: fixture.owner.workspaceId,
      userId: fixture.owner.userId,
      apiKeyId: fixture.owner.keyId,
      plan: 'enterprise',
      fileName: 'call 1.ulaw',
      mediaType: 'audio/basic',
      languages: ['hi'],
      diarize: true,
      minSpeakers: 2,
      maxSpeakers: 3,
      context: 'A call about a parcel.',
      keywords: [
        { term: 'Tandem', weight: 3 },
        { term: 'click to call', weight: 1 },
        { term: '10:30am', weight: 1 },
      ],
      includeWords: true,
      includeConfidence: true,
      scriptCorrection: true,
      minSplitMs: 7_500,
    });
    await nothingRemains();
    expect(existsSync(uploadPath)).toBe(false);
  });

  it('includes words if include_confidence alone is set', async () => {
    await post([AUDIO, field('include_confidence', 'true')]);
    await post([AUDIO, field('include_confidence', 'false')]);
    expect(fixture.transcriber.requests).toMatchObject([
      { includeWords: true, includeConfidence: true },
      { includeWords: false, includeConfidence: false },
    ]);
  });

  it('uses defaults for missing and empty fields', async () => {
    await post([AUDIO]);
    await post([AUDIO, field('language', ''), field('diarize', ''), field('max_speakers', ''), field('keywords', ',')]);
    const [bare, empty] = fixture.transcriber.requests.map(({ uploadPath: _path, ...request }) => request);
    expect(empty).toEqual(bare);
    expect(bare).toMatchObject({
      languages: null,
      diarize: false,
      minSpeakers: null,
      maxSpeakers: null,
      context: null,
      keywords: [],
      includeWords: false,
      includeConfidence: false,
      scriptCorrection: false,
      minSplitMs: 20_000,
    });
  });

  it.each<[string, FormPart[], string[] | null]>([
    ['auto', [field('language', 'auto')], null],
    ['capitals', [field('language', 'EN')], ['en']],
    ['a tag with a region', [field('language', 'en-IN')], ['en']],
    ['commas', [field('languages', 'en, hi')], ['en', 'hi']],
    ['repetition', [field('languages', 'en'), field('languages', 'hi'), field('languages', 'en')], ['en', 'hi']],
    ['JSON', [field('languages', '["en","hi"]')], ['en', 'hi']],
    ['a part of JSON', [{ name: 'languages', value: '["ur"]', type: 'application/json' }], ['ur']],
    ['auto in the list', [field('languages', 'auto')], null],
    ['both', [field('language', 'en'), field('languages', 'en,hi')], ['en', 'hi']],
    ['auto beside a list', [field('language', 'auto'), field('languages', 'hi')], ['hi']],
  ])('accepts languages by %s', async (_how, parts, languages) => {
    expect((await post([...parts, AUDIO])).status).toBe(200);
    expect(fixture.transcriber.requests[0]?.languages).toEqual(languages);
  });

  it('accepts the longest context and keywords in scripts of three bytes a character', async () => {
    const keywords = Array.from({ length: 200 }, () => `${'क'.repeat(100)}:10`).join(',');
    const { status } = await post([AUDIO, field('context', 'क'.repeat(8_000)), field('keywords', keywords)]);
    expect(status).toBe(200);
    const [request] = fixture.transcriber.requests;
    expect(request?.context).toBe('क'.repeat(8_000));
    expect(request?.keywords).toEqual(Array.from({ length: 200 }, () => ({ term: 'क'.repeat(100), weight: 10 })));
  });

  it('treats a zero or negative min_speakers as unset', async () => {
    await post([AUDIO, field('min_speakers', '0')]);
    await post([AUDIO, field('min_speakers', '-3')]);
    expect(fixture.transcriber.requests.map(({ minSpeakers }) => minSpeakers)).toEqual([null, null]);
  });
});

describe('POST /stt with an invalid form', () => {
  it.each<[string, FormPart[], string[]]>([
    ['no file', [field('language', 'en')], ['file']],
    ['nothing', [], ['file']],
    ['a text for a file', [field('file', 'RIFF')], ['file', 'file']],
    ['two files', [AUDIO, AUDIO], ['file']],
    ['a file elsewhere', [AUDIO, { ...AUDIO, name: 'audio' }], ['audio']],
    ['unknown fields', [field('lang', 'en'), AUDIO, field('x', '1')], ['lang', 'x']],
    ['a field given twice', [AUDIO, field('diarize', 'true'), field('diarize', 'true')], ['diarize']],
    ['no boolean', [AUDIO, field('diarize', 'yes please')], ['diarize']],
    ['no integer', [AUDIO, field('max_speakers', '2.5')], ['max_speakers']],
    ['too many speakers', [AUDIO, field('max_speakers', '21')], ['max_speakers']],
    ['more at least than at most', [AUDIO, field('min_speakers', '3'), field('max_speakers', '2')], ['min_speakers']],
    ['other timestamps', [AUDIO, field('return_timestamps', 'sentence')], ['return_timestamps']],
    ['chunks without length', [AUDIO, field('min_split_sec', '0')], ['min_split_sec']],
    ['a heavy keyword', [AUDIO, field('keywords', 'a:11')], ['keywords']],
    ['a keyword of negative weight', [AUDIO, field('keywords', 'Tandem:-5')], ['keywords']],
    ['too many keywords', [AUDIO, field('keywords', 'a,'.repeat(201))], ['keywords']],
    ['an invalid list', [AUDIO, field('languages', '[1]')], ['languages']],
    ['two single languages', [AUDIO, field('language', 'en,hi')], ['language']],
    ['auto among others', [AUDIO, field('languages', 'auto,hi')], ['languages']],
    ['a language beside the list', [AUDIO, field('language', 'en'), field('languages', 'hi')], ['language']],
    ['a long context', [AUDIO, field('context', 'x'.repeat(8_001))], ['context']],
    ['a far too long field', [AUDIO, field('context', 'x'.repeat(20_000))], ['context']],
    ['a field that is cut', [AUDIO, field('context', 'x'.repeat(70_000))], ['context']],
    ['a field of the prototype', [AUDIO, field('__proto__', 'x')], ['body']],
    ['too many parts', [AUDIO, ...Array.from({ length: 80 }, () => field('languages', 'en'))], ['body']],
  ])('reports every error: %s', async (_what, parts, paths) => {
    const { status, body } = await post(parts);
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.details.map(({ path }: { path: string }) => path)).toEqual(paths);
    expect(fixture.transcriber.requests).toEqual([]);
    await nothingRemains();
  });

  it('accepts numbers with all decimals of a double', async () => {
    await post([AUDIO, field('min_split_sec', `${20 / 3}`), field('keywords', `Tandem:${10 / 3},SIP:${1e-7}`)]);
    expect(fixture.transcriber.requests[0]).toMatchObject({
      minSplitMs: (20 / 3) * 1000,
      keywords: [
        { term: 'Tandem', weight: 10 / 3 },
        { term: 'SIP', weight: 1e-7 },
      ],
    });
  });

  it('rejects a language outside the catalogue with unsupported_language', async () => {
    const { status, body } = await post([AUDIO, field('language', 'tlh')]);
    expect([status, body.code]).toEqual([400, 'unsupported_language']);
  });

  it('rejects other bodies and truncated forms', async () => {
    expect((await fixture.call('POST', '/stt')).status).toBe(415);
    const { body, headers } = formOf([AUDIO]);
    const withoutBoundary = await fixture.call('POST', '/stt', {
      body,
      headers: { 'content-type': 'multipart/form-data' },
    });
    expect([withoutBoundary.status, withoutBoundary.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    for (const bytes of [20, 60, body.length - 10]) {
      const cut = await fixture.call('POST', '/stt', { body: body.subarray(0, bytes), headers });
      expect([cut.status, cut.body.code], `${bytes}`).toEqual([400, 'VALIDATION_FAILED']);
    }
    await nothingRemains();
  });

  it('rejects a file over 25 MB, with or without a declared length', async () => {
    const large = { ...AUDIO, value: Buffer.alloc(25 * 2 ** 20 + 1) };
    expect((await post([large])).body.code).toBe('PAYLOAD_TOO_LARGE');
    expect((await post([{ ...AUDIO, value: Buffer.alloc(25 * 2 ** 20) }])).status).toBe(200);
    const { body, headers } = formOf([{ ...AUDIO, value: Buffer.alloc(30 * 2 ** 20) }]);
    const authorization = `Bearer ${fixture.owner.key}`;
    const known = await fetch(`${url}/stt`, { method: 'POST', body, headers: { ...headers, authorization } });
    expect([known.status, ((await known.json()) as { code: string }).code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const chunks = new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 2 ** 20) controller.enqueue(body.subarray(at, at + 2 ** 20));
        controller.close();
      },
    });
    const unknown = await fetch(`${url}/stt`, {
      method: 'POST',
      body: chunks,
      duplex: 'half',
      headers: { ...headers, authorization },
    } as RequestInit);
    expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect((await post([AUDIO])).status).toBe(200);
    await nothingRemains();
  });
});

describe('access to POST /stt', () => {
  it('requires credentials, a role above viewer and the scope, before reading the body', async () => {
    const viewer = await fixture.addMemberWith('viewer');
    expect((await post([AUDIO], { as: null })).status).toBe(401);
    expect((await post([AUDIO], { as: viewer })).status).toBe(403);
    await fixture.sql`update api_keys set scopes = array['calls:read'] where id = ${viewer.keyId}`;
    expect((await post([AUDIO], { as: viewer })).body.details).toEqual({ required_scope: 'stt:write' });
    expect(fixture.transcriber.begun).toEqual([]);
  });

  it('accepts a session with a workspace in the query or the form', async () => {
    const authorization = `Bearer ${await sessionOf(fixture, fixture.owner)}`;
    const { workspaceId } = fixture.owner;
    const named = field('workspace_id', workspaceId);
    const ask = (parts: FormPart[], path = '/stt') => post(parts, { path, as: null, headers: { authorization } });
    expect((await ask([AUDIO])).body.code).toBe('WORKSPACE_NOT_FOUND');
    expect((await ask([AUDIO, named])).status).toBe(200);
    expect((await ask([AUDIO], `/stt?workspace_id=${workspaceId}`)).status).toBe(200);
    expect(fixture.transcriber.requests.map((request) => request.workspaceId)).toEqual([workspaceId, workspaceId]);
    const other = await fixture.addWorkspace();
    expect((await post([AUDIO, named], { as: other })).body.code).toBe('WORKSPACE_NOT_FOUND');
    await nothingRemains();
  });
});

describe('failures of POST /stt', () => {
  it('rejects excess transcriptions with error_code and the limit before reading the body', async () => {
    fixture.transcriber.onBegin = () => {
      throw new TandemError('STT_CONCURRENCY_LIMIT', 'All 8 are under way.', { details: { limit: 8 } });
    };
    const { status, body, headers } = await post([AUDIO, field('nonsense', 'x')]);
    expect(status).toBe(429);
    expect(body).toMatchObject({
      code: 'STT_CONCURRENCY_LIMIT',
      error_code: 'STT_CONCURRENCY_LIMIT',
      details: { limit: 8 },
    });
    expect(headers['retry-after']).toBeTruthy();
    // An unfinished upload does not block the response.
    const form = formOf([{ ...AUDIO, value: Buffer.alloc(20 * 2 ** 20) }]);
    const answer = await fetch(`${url}/stt`, {
      method: 'POST',
      body: form.body,
      headers: { ...form.headers, authorization: `Bearer ${fixture.owner.key}` },
    });
    expect(answer.status).toBe(429);
  });

  it('forwards Retry-After of a busy engine', async () => {
    fixture.transcriber.onTranscribe = () => {
      throw new TandemError('STT_UPSTREAM_RATE_LIMIT', 'Later.', { retryAfterS: 17 });
    };
    const { status, headers, body } = await post([AUDIO]);
    expect([status, headers['retry-after'], body.retry_after]).toEqual([429, '17', 17]);
  });

  it('logs 499 and cancels the transcription when the client disconnects', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    fixture.transcriber.onTranscribe = async (_request, { signal }) => {
      begun.resolve(signal);
      return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const controller = new AbortController();
    const { body, headers } = formOf([AUDIO]);
    const asking = fetch(`${url}/stt`, {
      method: 'POST',
      body,
      headers: { ...headers, authorization: `Bearer ${fixture.owner.key}` },
      signal: controller.signal,
    }).catch(() => 'left');
    const signal = await begun.promise;
    controller.abort();
    expect(await asking).toBe('left');
    await eventually(() => expect(signal.aborted).toBe(true));
    expect(signal.reason).toMatchObject({ code: 'STT_CLIENT_CANCELLED', status: 499 });
    await eventually(() => expect(fixture.logLines.some((line) => line.includes('"status":499'))).toBe(true));
    await nothingRemains();
  });

  it('leaves nothing behind when the client disconnects during the upload', async () => {
    const { body, headers } = formOf([{ ...AUDIO, value: Buffer.alloc(200_000) }]);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(
      `POST /stt HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${fixture.owner.key}\r\n` +
        `content-type: ${headers['content-type']}\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body.subarray(0, 100_000));
    await eventually(() => expect(fixture.transcriber.begun).toHaveLength(1));
    socket.destroy();
    await nothingRemains();
    expect(fixture.transcriber.requests).toEqual([]);
  });

  it('allows more time for an upload than for other bodies', async () => {
    const { body, headers } = formOf([AUDIO]);
    const lines = [`host: x`, `authorization: Bearer ${fixture.owner.key}`, `content-length: ${body.length}`];
    const upload = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8');
    const json = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8');
    upload.write(
      `POST /stt HTTP/1.1\r\n${[...lines, `content-type: ${headers['content-type']}`].join('\r\n')}\r\n\r\n`,
    );
    json.write(`POST /webhooks HTTP/1.1\r\n${[...lines, 'content-type: application/json'].join('\r\n')}\r\n\r\n{`);
    const refused = await new Promise<string>((resolve) => json.once('data', resolve));
    expect(refused).toContain('408 Request Timeout');
    upload.write(body);
    const answered = await new Promise<string>((resolve) => upload.once('data', resolve));
    expect(answered).toContain('200 OK');
    for (const socket of [upload, json]) socket.destroy();
  });
});

describe('standard clients of POST /stt', () => {
  it('include fetch with FormData', async () => {
    const form = new FormData();
    form.set('language', 'en');
    form.set('file', new Blob([Buffer.from('RIFF')], { type: 'audio/wav' }), 'call.wav');
    const answer = await fetch(`${url}/stt`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${fixture.owner.key}` },
    });
    expect(answer.status).toBe(200);
    expect(fixture.transcriber.requests[0]).toMatchObject({ fileName: 'call.wav', mediaType: 'audio/wav' });
  });

  it('include curl -F, which waits for 100 Continue with large files', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tandem-curl-'));
    await writeFile(join(folder, 'call.mp3'), Buffer.alloc(3 * 2 ** 20, 1));
    const { stdout } = await promisify(execFile)('curl', [
      ...['-sS', '-H', `authorization: Bearer ${fixture.owner.key}`, '-F', `file=@${join(folder, 'call.mp3')}`],
      ...['-F', 'languages=en', '-F', 'languages=hi', '-F', 'diarize=true', `${url}/v1/transcribe`],
    ]);
    await rm(folder, { recursive: true });
    expect(JSON.parse(stdout)).toMatchObject({ success: true, text: TRANSCRIPT.text });
    expect(fixture.transcriber.requests[0]).toMatchObject({ languages: ['en', 'hi'], diarize: true });
  });
});

it('GET /stt/languages lists the catalogue, with auto for files only', async () => {
  const viewer = await fixture.addMemberWith('viewer');
  const { status, body } = await fixture.call('GET', '/stt/languages', { as: viewer });
  expect(status).toBe(200);
  expect(body).toMatchObject({ success: true, message: expect.any(String) });
  expect(body.data[0]).toEqual({
    language_id: 'auto',
    name: 'Automatic detection',
    auto: true,
    rest: true,
    websocket: false,
  });
  expect(body.data.slice(1)).toContainEqual({
    language_id: 'ur',
    name: 'Urdu',
    auto: false,
    rest: true,
    websocket: false,
  });
});

it('cancels the transcription when the API key is deleted meanwhile', async () => {
  const leaver = await fixture.addMemberWith('member');
  const begun = Promise.withResolvers<void>();
  fixture.transcriber.onTranscribe = async (_request, { signal }) => {
    begun.resolve();
    await once(signal, 'abort');
    throw signal.reason;
  };
  const answer = post([AUDIO], { as: leaver });
  await begun.promise;
  expect((await fixture.call('DELETE', `/developer/api/${leaver.keyId}`)).status).toBe(200);
  const { status, body } = await answer;
  expect([status, body.code]).toEqual([401, 'UNAUTHORIZED']);
  await nothingRemains();
});
