import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { topUp } from '../../storage/ledger.ts';
import { sweepIdempotentRequests } from '../../storage/queries/idempotent-requests.ts';
import { idempotentRequestContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { callOf } from './fake-dialer.ts';
import { type CallOptions, createHttpFixture, type HttpFixture } from './fixture.ts';
import { callWith, sessionOf } from './identity-fixture.ts';
import { AUDIO, field, formOf } from './multipart-body.ts';
import { committedDocument, operationsOf } from './openapi-document.ts';

const PLACEMENT = {
  agent_number: '+919810000001',
  customer_number: '+919810000002',
  metadata: { order: 17, note: 'a' },
};
const TEXT = { text: 'Hello there.' };

let fixture: HttpFixture;
/** A second process on the same database. */
let other: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
  other = await createHttpFixture({ sql: fixture.sql, secrets: fixture.secrets });
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await fixture[Symbol.asyncDispose]();
});
beforeEach(() => {
  for (const { dialer } of [fixture, other]) {
    dialer.placed.length = 0;
    dialer.onPlace = (request) => ({ placed: true, replayed: false, call: callOf(request, `call_${randomUUID()}`) });
  }
});

const keyed = (key: string, options: CallOptions = {}): CallOptions => ({
  as: fixture.owner,
  ...options,
  headers: { 'idempotency-key': key, ...options.headers },
});
const place = (key: string, { at = fixture, ...options }: CallOptions & { at?: HttpFixture } = {}) =>
  at.call('POST', '/dialer/click2call', keyed(key, { body: PLACEMENT, ...options }));
const placedCalls = () => fixture.dialer.placed.length + other.dialer.placed.length;
const expireLeases = () =>
  fixture.sql`update idempotent_requests set leased_until = now() - interval '1 s' where leased_until is not null`;

describe('repeated request with its Idempotency-Key', () => {
  it('runs once and returns the first response to every process, marked as replayed', async () => {
    const key = randomUUID();
    const first = await place(key);
    const again = await place(key);
    const elsewhere = await place(key, { at: other });
    expect(first.status).toBe(201);
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    for (const { status, headers, raw } of [again, elsewhere]) {
      expect([status, raw.toString()]).toEqual([201, first.raw.toString()]);
      expect(headers['idempotency-replayed']).toBe('true');
      expect(headers['content-type']).toBe(first.headers['content-type']);
      expect(headers['x-request-id']).not.toBe(first.headers['x-request-id']);
      expect(headers['x-ratelimit-remaining']).toBeDefined();
    }
    expect(placedCalls()).toBe(1);
  });

  it('accepts reordered fields, but no changed values', async () => {
    const key = randomUUID();
    await place(key);
    const reordered = Object.fromEntries(
      Object.entries({ ...PLACEMENT, metadata: { note: 'a', order: 17 } }).reverse(),
    );
    expect((await place(key, { body: reordered })).status).toBe(201);
    const changed = await place(key, { body: { ...PLACEMENT, customer_number: '+919810000003' } });
    expect([changed.status, changed.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect(placedCalls()).toBe(1);
  });

  it('gets 409 with Retry-After while the first runs in any process', async () => {
    const key = randomUUID();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    fixture.dialer.onPlace = async (request) => {
      await held;
      return { placed: true, replayed: false, call: callOf(request) };
    };
    const first = place(key);
    await eventually(() => expect(placedCalls()).toBe(1));
    for (const at of [fixture, other]) {
      const { status, headers, body } = await place(key, { at });
      expect([status, body.code]).toEqual([409, 'IDEMPOTENCY_IN_PROGRESS']);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }
    release();
    expect((await first).status).toBe(201);
    expect((await place(key)).headers['idempotency-replayed']).toBe('true');
    expect(placedCalls()).toBe(1);
  });

  it('runs once when copies arrive together at two processes', async () => {
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, index) => place(key, { at: index % 2 === 0 ? fixture : other })),
    );
    expect(placedCalls()).toBe(1);
    expect(answers.filter(({ status }) => status === 201).length).toBeGreaterThanOrEqual(1);
    expect(new Set(answers.map(({ status, body }) => (status === 201 ? 'placed' : body.code)))).toEqual(
      new Set(['placed', ...(answers.some(({ status }) => status === 409) ? ['IDEMPOTENCY_IN_PROGRESS'] : [])]),
    );
  });

  it.each([
    ['no_free_channel', 429],
    ['CARRIER_LINE_DOWN', 503],
    ['INTERNAL', 500],
    ['C2C_OUTCOME_UNKNOWN', 504],
  ] as const)('runs again after %s', async (code, status) => {
    const key = randomUUID();
    const succeed = fixture.dialer.onPlace;
    fixture.dialer.onPlace = () => Promise.reject(new TandemError(code, 'Not now.'));
    expect((await place(key)).status).toBe(status);
    fixture.dialer.onPlace = succeed;
    expect((await place(key)).status).toBe(201);
    // Both attempts use one reference, so the second finds a call that the first placed.
    const references = fixture.dialer.placed.map(({ referenceId }) => referenceId);
    expect(references[0]).toMatch(/^qc2c-[0-9a-f-]{36}$/);
    expect(references).toEqual([references[0], references[0]]);
  });

  it('keeps its own reference_id', async () => {
    await place(randomUUID(), { body: { ...PLACEMENT, reference_id: 'order-9' } });
    expect(fixture.dialer.placed[0]?.referenceId).toBe('order-9');
  });

  it('returns a final error again', async () => {
    const key = randomUUID();
    fixture.dialer.onPlace = () => Promise.reject(new TandemError('RECHARGE_REQUIRED', 'Top up.'));
    const first = await place(key);
    const again = await place(key);
    expect([first.status, again.status, again.raw.toString()]).toEqual([402, 402, first.raw.toString()]);
    expect(placedCalls()).toBe(1);
  });

  it('accepts a correction after a validation error', async () => {
    const key = randomUUID();
    expect((await place(key, { body: { ...PLACEMENT, agent_number: '1' } })).status).toBe(400);
    expect((await place(key)).status).toBe(201);
  });

  it('runs again after its process dies, and a process that wakes later changes nothing', async () => {
    const key = randomUUID();
    const { promise: frozen, resolve: wake } = Promise.withResolvers<void>();
    fixture.dialer.onPlace = async (request) => {
      await frozen;
      return { placed: true, replayed: false, call: callOf(request, 'call_frozen') };
    };
    const first = place(key);
    await eventually(() => expect(placedCalls()).toBe(1));
    await expireLeases();
    const second = await place(key, { at: other });
    expect([second.status, second.headers['idempotency-replayed']]).toEqual([201, undefined]);
    expect(other.dialer.placed[0]?.referenceId).toBe(fixture.dialer.placed[0]?.referenceId);
    wake();
    await first;
    expect((await place(key)).raw.toString()).toBe(second.raw.toString());
  });

  it('runs again after a day, and then a sweep deletes the row', async () => {
    const key = randomUUID();
    await place(key);
    await fixture.sql`update idempotent_requests set expires_at = now()`;
    expect((await place(key)).headers).not.toHaveProperty('idempotency-replayed');
    expect(placedCalls()).toBe(2);
    const [kept] = await fixture.sql`
      select extract(epoch from expires_at - created_at) as seconds from idempotent_requests
      where expires_at > now()`;
    expect(Number(kept?.seconds)).toBe(86_400);
    await fixture.sql`update idempotent_requests set expires_at = now()`;
    const rows = await fixture.sql`select id from idempotent_requests`;
    expect(await sweepIdempotentRequests(fixture.sql)).toBe(rows.length);
    expect(await fixture.sql`select id from idempotent_requests`).toHaveLength(0);
  });
});

describe('Idempotency-Key', () => {
  it('belongs to one API key, one workspace and one operation', async () => {
    const key = randomUUID();
    await place(key);
    const colleague = await fixture.addMemberWith('member');
    const stranger = await fixture.addWorkspace();
    for (const as of [colleague, stranger]) {
      expect((await place(key, { as })).headers).not.toHaveProperty('idempotency-replayed');
    }
    expect(placedCalls()).toBe(3);
    const collection = { name: randomUUID(), type: 'team' };
    const created = await fixture.call('POST', '/memory/collections', keyed(key, { body: collection }));
    expect([created.status, created.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });

  it('belongs to one path', async () => {
    const key = randomUUID();
    const webhook = { url: 'https://hooks.example.com/a', events: ['stt.completed'] };
    const ids = await Promise.all(
      [1, 2].map(async () => (await fixture.call('POST', '/webhooks', { body: webhook })).body.data.id as string),
    );
    const test = (id: string) => fixture.call('POST', `/webhooks/${id}/test`, keyed(key, { body: {} }));
    expect((await test(ids[0]!)).status).toBe(202);
    expect((await test(ids[1]!)).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it.each([
    ['empty', ''],
    ['longer than 255 characters', 'x'.repeat(256)],
    ['not ASCII', 'clé'],
  ])('gets 400 for %s', async (_how, key) => {
    const { status, body } = await place(key);
    expect([status, body.code, body.details?.[0]?.path]).toEqual([400, 'VALIDATION_FAILED', 'Idempotency-Key']);
    expect(placedCalls()).toBe(0);
  });

  it('accepts 255 characters', async () => {
    expect((await place('x'.repeat(255))).status).toBe(201);
  });

  it('returns nothing to a revoked API key', async () => {
    const key = randomUUID();
    const as = await fixture.addMemberWith('member');
    await place(key, { as });
    await fixture.sql`update api_keys set revoked_at = now() where id = ${as.keyId}`;
    expect((await place(key, { as })).status).toBe(401);
  });

  it('returns a new secret again, which the database stores encrypted', async () => {
    const key = randomUUID();
    const session = await sessionOf(fixture, fixture.owner);
    const create = () =>
      fixture.call('POST', `/developer/api?workspace_id=${fixture.owner.workspaceId}`, {
        as: null,
        body: { name: 'CRM' },
        headers: { 'idempotency-key': key, authorization: `Bearer ${session}` },
      });
    const [first, again] = [await create(), await create()];
    expect(first.body.data.key).toMatch(/^sk_/);
    expect(again.body.data.key).toBe(first.body.data.key);
    const rows = await fixture.sql`select * from idempotent_requests`;
    const stored = rows.map(
      ({ recordEncrypted, ...row }) => `${recordEncrypted.toString('latin1')}${JSON.stringify(row)}`,
    );
    expect(stored.join()).not.toContain(first.body.data.key);
    expect(stored.join()).not.toContain(key);
    expect(fixture.logLines.join()).not.toContain(key);
  });

  it('works with a session that creates a workspace', async () => {
    const headers = {
      authorization: `Bearer ${await sessionOf(fixture, fixture.owner)}`,
      'idempotency-key': randomUUID(),
    };
    const create = () => fixture.call('POST', '/workspaces', { as: null, body: { name: 'Second' }, headers });
    const [first, again] = [await create(), await create()];
    expect([first.status, again.raw.toString()]).toEqual([201, first.raw.toString()]);
  });

  it('returns the billing headers of the first response, without a second charge after a crash', async () => {
    const key = randomUUID();
    const { memory } = fixture;
    await memory.ready({ withinMs: 10_000 });
    const { workspaceId } = fixture.owner;
    await topUp(fixture.sql, { workspaceId, amountNano: 1_000_000_000n, paymentType: 'one_time', operationKey: key });
    const search = () => fixture.call('POST', '/memory/search', keyed(key, { body: { query: 'refund policy' } }));
    const [first, again] = [await search(), await search()];
    expect(first.status).toBe(200);
    expect(again.headers['x-billing-tx']).toBe(first.headers['x-billing-tx']);
    expect(again.headers['x-credit-charged']).toBe(first.headers['x-credit-charged']);

    // Simulates a crash between the charge and the response.
    const rows = await fixture.sql`select id, record_encrypted from idempotent_requests where operation like '%search'`;
    for (const { id, recordEncrypted } of rows) {
      const context = idempotentRequestContext(id);
      const { fingerprint } = JSON.parse(fixture.secrets.open(recordEncrypted, context));
      const lost = fixture.secrets.seal(JSON.stringify({ fingerprint, response: null }), context);
      await fixture.sql`update idempotent_requests set is_done = false, record_encrypted = ${lost} where id = ${id}`;
    }
    const third = await search();
    expect([third.status, third.headers['idempotency-replayed']]).toEqual([200, undefined]);
    expect(third.headers['x-billing-tx']).toBe(first.headers['x-billing-tx']);
  });
});

describe('response too large, streamed or sealed for replay', () => {
  it.each([
    ['/tts-stream', TEXT],
    ['/v1/audio/speech', { model: 'tts-1', input: 'Hello there.', voice: 'alloy', response_format: 'pcm' }],
  ])('gets 409 on repetition: the stream of %s', async (url, body) => {
    const key = randomUUID();
    const before = fixture.speech.asked.length;
    const first = await fixture.call('POST', url, keyed(key, { body }));
    expect(first.status).toBe(200);
    await eventually(async () => {
      const again = await fixture.call('POST', url, keyed(key, { body }));
      expect([again.status, again.body.code ?? again.body.error.code]).toEqual([409, 'IDEMPOTENCY_NOT_REPLAYABLE']);
      if (url === '/tts-stream') {
        expect(again.body.details).toEqual({ status: 200, request_id: first.headers['x-request-id'] });
      }
    });
    expect(fixture.speech.asked.length).toBe(before + 1);
  });

  it('gets 409 on repetition: sealed with a lost TANDEM_SECRET_KEY', async () => {
    const key = randomUUID();
    expect((await place(key)).status).toBe(201);
    const secrets = createSecretBox(Buffer.alloc(32, 1));
    await using rekeyed = await createHttpFixture({ sql: fixture.sql, secrets });
    const again = await place(key, { at: rekeyed });
    expect([again.status, again.body.code]).toEqual([409, 'IDEMPOTENCY_NOT_REPLAYABLE']);
    expect(rekeyed.dialer.placed).toEqual([]);
  });

  it('gets 409 on repetition: a body over 1 MB', async () => {
    const key = randomUUID();
    fixture.dialer.onPlace = (request) => ({
      placed: true,
      replayed: false,
      call: callOf({ ...request, metadata: { long: 'x'.repeat(2 ** 20) } }),
    });
    expect((await place(key)).status).toBe(201);
    expect((await place(key)).body.code).toBe('IDEMPOTENCY_NOT_REPLAYABLE');
    expect(placedCalls()).toBe(1);
  });

  it('runs again when the client left before the response began', async () => {
    const key = randomUUID();
    await fixture.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = fixture.app.server.address() as AddressInfo;
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${fixture.owner.key}`, 'content-type': 'application/json' };
    const body = JSON.stringify(TEXT);
    const speak = fixture.speech.speak.bind(fixture.speech);
    const started = Promise.withResolvers<void>();
    fixture.speech.speak = (_request, signal) => {
      started.resolve();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const request = fetch(`http://127.0.0.1:${port}/tts-stream`, {
      ...{ method: 'POST', body, signal: gone.signal },
      headers: { ...headers, 'idempotency-key': key },
    });
    await started.promise;
    gone.abort();
    await expect(request).rejects.toThrow();
    fixture.speech.speak = speak;
    await eventually(async () => {
      expect((await fixture.call('POST', '/tts-stream', keyed(key, { body: TEXT }))).status).toBe(200);
    });
  });
});

describe('upload with an Idempotency-Key', () => {
  const upload = (key: string, value: Buffer, { boundary = 'a', language = 'en' } = {}) => {
    const { body, headers } = formOf([field('language', language), { ...AUDIO, value }]);
    const text = body.toString('latin1').replaceAll('tandem-test-boundary', boundary);
    const type = headers['content-type'].replace('tandem-test-boundary', boundary);
    return fixture.call(
      'POST',
      '/stt',
      keyed(key, { body: Buffer.from(text, 'latin1'), headers: { 'content-type': type } }),
    );
  };

  it('matches by its fields and file bytes, not by its boundary', async () => {
    const key = randomUUID();
    const first = await upload(key, Buffer.from('RIFF one'));
    expect(first.status).toBe(200);
    const again = await upload(key, Buffer.from('RIFF one'), { boundary: 'b' });
    expect([again.headers['idempotency-replayed'], again.raw.toString()]).toEqual(['true', first.raw.toString()]);
    expect((await upload(key, Buffer.from('RIFF two'))).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
    expect((await upload(key, Buffer.from('RIFF one'), { language: 'hi' })).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it('matches by the URL of its audio', async () => {
    const key = randomUUID();
    const transcribe = (name: string) => {
      const body = { url: `https://files.example.com/${name}`, language: 'en' };
      return fixture.call('POST', '/stt', keyed(key, { body }));
    };
    expect((await transcribe('a.wav')).status).toBe(200);
    expect((await transcribe('a.wav')).headers['idempotency-replayed']).toBe('true');
    const other = await transcribe('b.wav');
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('matches by its bytes when the body is the audio', async () => {
    const key = randomUUID();
    const send = (body: string) =>
      fixture.call('POST', '/stt', keyed(key, { body: Buffer.from(body), headers: { 'content-type': 'audio/wav' } }));
    expect((await send('one')).status).toBe(200);
    expect((await send('one')).headers['idempotency-replayed']).toBe('true');
    expect((await send('two')).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  it('runs again for a new session if the earlier one ended midway', async () => {
    const key = randomUUID();
    const { transcriber, owner } = fixture;
    const send = (session: string) =>
      fixture.call('POST', `/stt?workspace_id=${owner.workspaceId}`, {
        as: null,
        body: Buffer.from('one'),
        headers: { authorization: `Bearer ${session}`, 'content-type': 'audio/wav', 'idempotency-key': key },
      });
    const { onTranscribe } = transcriber;
    const begun = Promise.withResolvers<void>();
    transcriber.onTranscribe = async (_request, { signal }) => {
      begun.resolve();
      await once(signal, 'abort');
      throw signal.reason;
    };
    const session = await sessionOf(fixture, owner);
    const interrupted = send(session);
    await begun.promise;
    await callWith(fixture, session, ['POST', '/auth/logout']);
    expect((await interrupted).status).toBe(401);
    transcriber.onTranscribe = onTranscribe;
    expect((await send(await sessionOf(fixture, owner))).status).toBe(200);
  });
});

it('every POST that creates or charges declares Idempotency-Key, and no other', async () => {
  const posts = operationsOf(await committedDocument()).filter(({ method }) => method === 'POST');
  const takes = (name: string) => {
    const { parameters = [] } = posts.find(({ operationId }) => operationId === name)!;
    return parameters.some((parameter) => parameter.in === 'header' && parameter.name === 'idempotency-key');
  };
  const ignoring = posts.map(({ operationId }) => operationId).filter((name) => !takes(name));
  expect(ignoring.toSorted()).toEqual(
    [
      'checkDoNotCall',
      'hangUpCall',
      'holdCallLeg',
      'login',
      'logInWithLink',
      'logout',
      'mintCallRecordingUrl',
      'mintPlaybackUrl',
      'muteCallLeg',
      'pauseCallRecording',
      'createLiveStreamToken',
      'createPhoneToken',
      'createStreamToken',
      'receiveStripeEvent',
      'register',
      'resetPassword',
      'resumeCallLeg',
      'resumeCallRecording',
      'unmuteCallLeg',
      'unsubscribe',
    ].toSorted(),
  );
  expect(posts.length - ignoring.length).toBeGreaterThanOrEqual(38);
});
