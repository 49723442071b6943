import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UNCOMPRESSED } from '../../http/compression.ts';
import { wavHeader } from '../../media/wav.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { committedDocument, operationsOf, type Schema } from './openapi-document.ts';
import { finish, seedCall, seedRecordedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let owner: Member;
beforeAll(async () => {
  fixture = await createHttpFixture({ rateLimits: { anonymousPerMinute: 1000 } });
  const { workspace } = await seedWorkspace(fixture.sql);
  owner = await fixture.addMemberWith('owner', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  for (const referenceId of ['one', 'two', 'three']) {
    const { callId } = await seedCall(fixture, { by: owner, referenceId });
    await finish(fixture, callId);
  }
});
afterAll(() => fixture[Symbol.asyncDispose]());

const LIST = '/dialer/click2call';
const get = (url: string, headers: Record<string, string>, as: Member | null = owner) =>
  fixture.call('GET', url, { as, headers });
/** Returns the response undecoded. */
const inject = (method: 'GET' | 'HEAD', url: string, accepted: string) =>
  fixture.app.inject({ method, url, headers: { authorization: `Bearer ${owner.key}`, 'accept-encoding': accepted } });

describe('response compression', () => {
  it.each([
    ['br', 'br'],
    ['gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['identity, br;q=0.5', undefined],
    ['gzip;q=0', undefined],
    ['deflate', undefined],
    ['zstd', undefined],
    ['', undefined],
  ])('answers Accept-Encoding %j with the encoding %s', async (accepted, encoding) => {
    const plain = await get(LIST, {});
    const { statusCode, headers, rawPayload: raw } = await inject('GET', LIST, accepted);
    expect([statusCode, headers['content-encoding'], headers.vary]).toEqual([200, encoding, 'accept-encoding']);
    expect(headers['content-length']).toBe(String(raw.length));
    const decoded = encoding === 'br' ? brotliDecompressSync(raw) : encoding === 'gzip' ? gunzipSync(raw) : raw;
    expect(decoded.equals(plain.raw)).toBe(true);
    expect(plain.raw.length).toBeGreaterThan(1024);
    if (encoding !== undefined) expect(raw.length).toBeLessThan(plain.raw.length / 2);
  });

  it('skips bodies below 1 KiB', async () => {
    const { headers, raw } = await get('/dialer/pool', { 'accept-encoding': 'br' });
    expect([headers['content-encoding'], headers['content-length']]).toEqual([undefined, String(raw.length)]);
  });

  it.each(['br', 'gzip', 'identity'])('answers HEAD with the headers of GET: %s', async (accepted) => {
    const whole = await inject('GET', LIST, accepted);
    const head = await inject('HEAD', LIST, accepted);
    expect(head.rawPayload).toHaveLength(0);
    for (const name of ['content-encoding', 'content-length', 'content-type', 'vary']) {
      expect([name, head.headers[name]]).toEqual([name, whole.headers[name]]);
    }
  });

  it.each([
    ['/openapi.json', 'br'],
    ['/docs/swagger-ui.css', 'br'],
    ['/docs/swagger-ui-bundle.js', 'gzip'],
  ])('compresses every text type: %s', async (url, encoding) => {
    const answer = await inject('GET', url, encoding);
    expect([answer.statusCode, answer.headers['content-encoding']]).toEqual([200, encoding]);
    const plain = await fixture.app.inject({ url });
    const decode = encoding === 'br' ? brotliDecompressSync : gunzipSync;
    expect(decode(answer.rawPayload).equals(plain.rawPayload)).toBe(true);
  });

  it('skips errors and images', async () => {
    const image = await get('/docs/favicon-32x32.png', { 'accept-encoding': 'br' });
    expect([image.headers['content-encoding'], image.headers.vary]).toEqual([undefined, undefined]);
    const error = await get('/nowhere', { 'accept-encoding': 'br' });
    expect([error.status, error.body.code, error.headers['content-encoding']]).toEqual([404, 'NOT_FOUND', undefined]);
  });

  it('streams compressed CSV', async () => {
    const url = '/billing/export.csv?type=usage';
    const plain = await get(url, {});
    const { headers, raw } = await get(url, { 'accept-encoding': 'gzip' });
    expect([headers['content-encoding'], headers.vary]).toEqual(['gzip', 'accept-encoding']);
    expect(gunzipSync(raw).equals(plain.raw)).toBe(true);
  });

  it('adds accept-encoding to a response that varies by Accept', async () => {
    const [call] = (await get(LIST, {})).body.data.calls;
    const { headers } = await get(`${LIST}/${call.call_id}/sip`, {});
    expect(headers.vary).toBe('accept, accept-encoding');
  });
});

describe('streaming response', () => {
  it('sends events uncompressed', async () => {
    const [call] = (await get(LIST, {})).body.data.calls;
    const url = `${LIST}/${call.call_id}/stream`;
    const { status, headers, raw } = await get(url, { 'accept-encoding': 'br, gzip' });
    expect([status, headers['content-encoding']]).toEqual([200, undefined]);
    expect(raw.toString()).toContain('event: call.not_answered');
  });

  it.each([
    ['application/x-ndjson', 'application/x-ndjson'],
    ['audio/wav', 'audio/wav'],
  ])('sends speech as %s uncompressed', async (accept, type) => {
    const { status, headers } = await fixture.call('POST', '/tts-stream', {
      as: owner,
      body: { text: 'Hello. '.repeat(50), voice_id: 'en-us' },
      headers: { accept, 'accept-encoding': 'br, gzip' },
    });
    expect([status, headers['content-encoding']]).toEqual([200, undefined]);
    expect(headers['content-type']).toContain(type);
  });
});

describe('stored audio', () => {
  it('keeps the length, ETag and ranges of the object', async () => {
    const bytes = Buffer.concat([wavHeader({ channels: 2, sampleRateHz: 8000 }, 3200), Buffer.alloc(3200)]);
    const { recordingId } = await seedRecordedCall(fixture, { by: owner, bytes });
    const minted = await fixture.call('POST', `/dialer/recordings/${recordingId}/playback-url`, { as: owner });
    const { pathname, search } = new URL(minted.body.data.playback_url);
    const ask = (headers: Record<string, string>) =>
      fixture.call('GET', pathname + search, { as: null, headers: { 'accept-encoding': 'br, gzip', ...headers } });

    const whole = await ask({});
    expect([whole.status, whole.headers['content-encoding'], whole.headers.vary]).toEqual([200, undefined, undefined]);
    expect([whole.headers['content-length'], whole.raw.equals(bytes)]).toEqual([String(bytes.length), true]);
    const part = await ask({ range: 'bytes=0-1999' });
    expect([part.status, part.headers['content-encoding'], part.raw.length]).toEqual([206, undefined, 2000]);
    const cached = await ask({ 'if-none-match': String(whole.headers.etag) });
    expect([cached.status, cached.headers.etag, cached.raw.length]).toEqual([304, whole.headers.etag, 0]);
  });
});

describe('response with a secret', () => {
  it('stays uncompressed when it echoes text of the request', async () => {
    const body = { url: `https://hooks.example.com/${'a'.repeat(1500)}`, events: ['stt.completed'] };
    const headers = { 'accept-encoding': 'br, gzip' };
    const created = await fixture.call('POST', '/webhooks', { as: owner, body, headers });
    expect([created.status, created.headers['content-encoding']]).toEqual([201, undefined]);
    expect(created.raw.length).toBeGreaterThan(1024);
    // This response does not contain the secret.
    const { id } = created.body.data;
    const shown = await inject('GET', `/webhooks/${id}`, 'br');
    expect(shown.headers['content-encoding']).toBe('br');
  });

  it('appears in UNCOMPRESSED for every operation that returns a secret', async () => {
    const sending = operationsOf(await committedDocument())
      .filter(({ responses }) =>
        Object.entries(responses).some(
          ([status, { content }]) =>
            status.startsWith('2') && fieldsOf(content?.['application/json']?.schema).some(isSecret),
        ),
      )
      .map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);
    expect(sending.filter((operation) => !UNCOMPRESSED.has(operation))).toEqual([]);
    expect(sending.length).toBeGreaterThan(10);
  });

  it('corresponds to an operation for each entry of UNCOMPRESSED', async () => {
    const documented = operationsOf(await committedDocument()).map(
      ({ method, path }) => `${method} ${path.replace('/media/{key}', '/media/*').replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect([...UNCOMPRESSED].filter((operation) => !documented.includes(operation))).toEqual([]);
  });
});

it('stores the plain response for replays, and encodes each as its client accepts', async () => {
  const keys = Array.from({ length: 20 }, (_, index) => `${'polite '.repeat(10)}${index}`);
  const questions = Object.fromEntries(keys.map((key) => [key, { type: 'boolean' }]));
  const request = (accepted: string) =>
    fixture.app.inject({
      ...{ method: 'POST', url: '/judge/rubrics' },
      headers: {
        authorization: `Bearer ${owner.key}`,
        'idempotency-key': 'compressed once',
        'accept-encoding': accepted,
      },
      payload: { name: 'Compressed', questions },
    });
  const first = await request('br');
  expect([first.statusCode, first.headers['content-encoding']]).toEqual([201, 'br']);
  const body = brotliDecompressSync(first.rawPayload).toString();
  const plain = await request('identity');
  expect([plain.headers['idempotency-replayed'], plain.headers['content-encoding']]).toEqual(['true', undefined]);
  expect(plain.body).toBe(body);
  const zipped = await request('gzip');
  expect([zipped.headers['idempotency-replayed'], zipped.headers['content-encoding']]).toEqual(['true', 'gzip']);
  expect(gunzipSync(zipped.rawPayload).toString()).toBe(body);
});

it('serves a standard client, which decodes automatically', async () => {
  const address = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  const response = await fetch(`${address}${LIST}`, { headers: { authorization: `Bearer ${owner.key}` } });
  expect(response.headers.get('content-encoding')).toBe('gzip');
  expect(await response.json()).toEqual((await get(LIST, {})).body);
  const head = await fetch(`${address}${LIST}`, { method: 'HEAD', headers: { authorization: `Bearer ${owner.key}` } });
  expect([head.status, await head.text()]).toEqual([200, '']);
  expect(head.headers.get('content-length')).toBe(response.headers.get('content-length'));
});

const SECRETS = ['secret', 'token', 'key', 'playback_url', 'peaks_url', 'sample_url', 'unsubscribe_url'];

function isSecret(name: string): boolean {
  return SECRETS.includes(name);
}

/** Names of all fields outside arrays: completions contain tokens of another kind there. */
function fieldsOf({ properties = {}, anyOf = [] }: Schema = {}): string[] {
  return [...Object.keys(properties), ...Object.values(properties).flatMap(fieldsOf), ...anyOf.flatMap(fieldsOf)];
}
