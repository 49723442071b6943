import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { topUp } from '../../storage/ledger.ts';
import { createLimitsInProcess, type Limits } from '../../storage/limits/limits.ts';
import { setPrice } from '../../storage/price-book.ts';
import { fingerprintOf, mintApiKey } from '../../storage/queries/api-key-secret.ts';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import { eventually, untilTruthy } from '../eventually.ts';
import { USD } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';
import { connectStt, type SttClient } from './stt-client.ts';

/** Shared by tests without their own settings. */
let shared: HttpFixture;
let fixture: HttpFixture;
let origin: string;
let member: Member;
const clients: SttClient[] = [];

beforeAll(async () => {
  shared = await createHttpFixture();
  await shared.app.listen({ host: '127.0.0.1', port: 0 });
  await fund(shared, shared.owner);
});
afterAll(() => shared[Symbol.asyncDispose]());
beforeEach(() => use(shared));
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate();
  await sessionsEnd();
  if (fixture !== shared) await fixture[Symbol.asyncDispose]();
});

async function use(chosen: HttpFixture): Promise<void> {
  fixture = chosen;
  origin = `http://127.0.0.1:${(chosen.app.server.address() as AddressInfo).port}`;
  // Limits count slots per user.
  member = await chosen.addMemberWith('member');
  chosen.liveStt.sessions.length = 0;
}

async function useServerWith(options: Parameters<typeof createHttpFixture>[0]): Promise<void> {
  const own = await createHttpFixture(options);
  await own.app.listen({ host: '127.0.0.1', port: 0 });
  await fund(own, own.owner);
  await use(own);
}

async function fund({ sql }: HttpFixture, { workspaceId }: Member): Promise<void> {
  const amountNano = 5n * USD;
  await topUp(sql, {
    workspaceId,
    amountNano,
    paymentType: 'admin_bonus',
    operationKey: `fund:${workspaceId}`,
  });
}

function dial(query: Record<string, string>, options = {}): SttClient {
  const client = connectStt(origin, query, options);
  clients.push(client);
  return client;
}

async function established(options = {}): Promise<SttClient> {
  const client = dial({ apiKey: member.key }, options);
  await client.until('connected', 2);
  return client;
}

describe('GET /ws/stt', () => {
  it('answers ok without an upgrade', async () => {
    const { status, raw, headers } = await fixture.call('GET', '/ws/stt', { as: null });
    expect([status, raw.toString()]).toEqual([200, 'ok']);
    expect(headers['x-ratelimit-limit']).toBeDefined();
  });

  it('ignores upgrades at other paths and to other protocols', async () => {
    const headers = { connection: 'upgrade', upgrade: 'websocket' };
    expect((await plain('/healthz', headers)).statusCode).toBe(200);
    expect((await plain('/ws/other', headers)).statusCode).toBe(404);
    expect((await plain('/ws/stt', { connection: 'upgrade', upgrade: 'h2c' })).statusCode).toBe(200);
  });

  it("answers an invalid handshake in the API's error format", async () => {
    const response = await plain('/ws/stt', { connection: 'upgrade', upgrade: 'websocket' });
    expect(response.statusCode).toBe(400);
    expect(response.headers['x-request-id']).toBeDefined();
    const body = JSON.parse(Buffer.concat(await response.toArray()).toString());
    expect(body).toMatchObject({ success: false, code: 'VALIDATION_FAILED' });
  });
});

describe('connecting client of /ws/stt', () => {
  it("receives the connection steps, its user id and the server's capabilities, in this order", async () => {
    const client = await established();
    expect(client.messages).toMatchObject([
      { type: 'connecting', message: expect.any(String), timestamp: expect.any(Number) },
      { type: 'connected' },
      {
        type: 'connection_established',
        service: 'stt',
        user_id: member.userId,
        credit_balance: 5,
        workspace: member.workspaceId,
      },
      {
        type: 'connected',
        server_info: {
          server_type: 'tandem',
          ready: true,
          total_languages: 1,
          features: { max_languages_per_session: 5, telephony_mulaw: true, interim_results: true },
        },
      },
    ]);
    const { workspaceId, userId } = member;
    expect(fixture.liveStt.session.options).toMatchObject({
      workspaceId,
      userId,
      apiKeyId: member.keyId,
      mayRefine: true,
    });
  });

  it('can use a session token with a workspace', async () => {
    const token = await sessionOf(fixture, member);
    // Clients may send empty parameters.
    const client = dial({ apiKey: '', token, workspace_id: member.workspaceId });
    expect(await client.until('connection_established')).toMatchObject({ user_id: member.userId });
    const without = dial({ token });
    expect(await without.until('error')).toMatchObject({ code: 'AUTH_FAILED' });
  });

  it.each(['Bearer', 'bearer', 'Token'])('can send its key in the Authorization header as %s', async (scheme) => {
    const client = dial({}, { headers: { authorization: `${scheme} ${member.key}` } });
    expect(await client.until('connection_established')).toMatchObject({ user_id: member.userId });
    expect(client.socket.protocol).toBe('');
    expect(fixture.logLines.join('')).not.toContain(member.key.slice(3));
  });

  it.each(['token', 'bearer'])(
    'can send its key as a subprotocol after %s, which the server selects',
    async (scheme) => {
      const client = dial({}, { protocols: [scheme, member.key] });
      expect(await client.until('connection_established')).toMatchObject({ user_id: member.userId });
      expect(client.socket.protocol).toBe(scheme);
      expect(fixture.logLines.join('')).not.toContain(member.key.slice(3));
    },
  );

  it('can send a session token in the header or as a subprotocol, with the workspace in the query', async () => {
    const token = await sessionOf(fixture, member);
    const query = { workspace_id: member.workspaceId };
    for (const options of [{ headers: { authorization: `Bearer ${token}` } }, { protocols: ['bearer', token] }]) {
      const client = dial(query, options);
      expect(await client.until('connection_established')).toMatchObject({ user_id: member.userId });
    }
  });

  it("can combine the key in the query with a proxy's credentials and other subprotocols", async () => {
    const client = dial({ apiKey: member.key }, { headers: { authorization: 'Basic eDp5' }, protocols: ['stt'] });
    expect(await client.until('connection_established')).toMatchObject({ user_id: member.userId });
    expect(client.socket.protocol).toBe('stt');
  });

  it.each([
    [{ headers: { authorization: 'Bearer sk_wrong' } }],
    [{ protocols: ['token', 'sk_wrong'] }],
    [{ protocols: ['token'] }],
    [{ protocols: ['sk_wrong'] }],
  ])('fails with a wrong key: %j', async (options) => {
    const client = dial({}, options);
    expect(await client.until('error')).toMatchObject({ code: 'AUTH_FAILED' });
    expect(await client.closed).toBe(1008);
    expect(fixture.logLines.join('')).not.toContain('sk_wrong');
  });

  it('fails with bad credentials, and gets the reason before the close', async () => {
    const owner = await fixture.addWorkspace();
    const queries: Record<string, string>[] = [
      {},
      { apiKey: '' },
      { apiKey: 'sk_nothing-of-the-kind-at-all' },
      { apiKey: 'two words' },
      { apiKey: `${member.key}x` },
      { apiKey: member.key, workspace_id: owner.workspaceId },
      { token: 'a.b.c', workspace_id: member.workspaceId },
    ];
    for (const query of queries) {
      const client = dial(query);
      expect(await client.closed).toBe(1008);
      expect(client.types()).toEqual(['connecting', 'error']);
      expect(client.messages[1]).toMatchObject({ code: 'AUTH_FAILED', message: expect.any(String) });
    }
    expect(fixture.liveStt.sessions).toEqual([]);
    expect(fixture.logLines.join('')).not.toContain(member.key.slice(3));
  });

  it('fails as a viewer, and with a key for another scope', async () => {
    const viewer = await fixture.addMemberWith('viewer');
    const limited = mintApiKey();
    await createApiKey(fixture.sql, {
      workspaceId: member.workspaceId,
      createdByUserId: member.userId,
      name: 'limited',
      ...fingerprintOf(limited),
      scopes: ['calls:read'],
      now: fixture.now.current,
    });
    for (const apiKey of [viewer.key, limited]) {
      const client = dial({ apiKey });
      expect(await client.closed).toBe(1008);
      expect(client.messages[1]).toMatchObject({ type: 'error', code: 'FORBIDDEN' });
    }
  });

  it('needs no money for free transcription', async () => {
    const { key, workspaceId } = await fixture.addWorkspace();
    await setPrice(fixture.sql, { scope: { workspaceId }, item: 'stt', value: 0n, now: fixture.now.current });
    const client = dial({ apiKey: key });
    expect(await client.until('connection_established')).toMatchObject({ credit_balance: 0 });
  });

  it('fails with an empty wallet', async () => {
    const { key } = await fixture.addWorkspace();
    const client = dial({ apiKey: key });
    expect(await client.closed).toBe(1008);
    expect(client.messages[1]).toMatchObject({ type: 'error', code: 'INSUFFICIENT_CREDITS' });
  });

  it('counts failures against its address, even behind a proxy', async () => {
    await useServerWith({ rateLimits: { anonymousPerMinute: 2 } });
    const codes: string[] = [];
    for (const forwarded of ['10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.2']) {
      const client = dial({ apiKey: 'sk_nothing-of-the-kind-at-all' }, { headers: { 'x-forwarded-for': forwarded } });
      codes.push((await client.until('error')).code);
    }
    expect(codes).toEqual(['AUTH_FAILED', 'AUTH_FAILED', 'RATE_LIMITED', 'AUTH_FAILED']);
  });

  it('counts against the rate limit of its workspace', async () => {
    await useServerWith({ rateLimits: { plans: { enterprise: { perMinute: 1, perDay: 9 } } } });
    await established();
    const second = dial({ apiKey: member.key });
    expect(await second.until('error')).toMatchObject({ code: 'RATE_LIMITED', retry_after: expect.any(Number) });
    expect(await second.closed).toBe(1008);
  });

  it('can open eight sessions, and another when one ends', async () => {
    for (let open = 0; open < 8; open += 1) await established();
    const ninth = dial({ apiKey: member.key });
    expect(await ninth.closed).toBe(1008);
    expect(ninth.messages[1]).toMatchObject({ type: 'error', code: 'STT_CONCURRENCY_LIMIT', details: { limit: 8 } });
    fixture.liveStt.sessions[0]?.close(1000, 'done');
    expect(await clients[0]?.closed).toBe(1000);
    await eventually(async () => await established());
  });

  it('loses messages from before the connection is established', async () => {
    const received = Promise.withResolvers<void>();
    const limits = createLimitsInProcess();
    const acquireSlot: Limits['acquireSlot'] = async (request) => {
      await received.promise;
      return await limits.acquireSlot(request);
    };
    await useServerWith({ limits: { ...limits, acquireSlot } });
    const client = dial({ apiKey: member.key });
    client.socket.on('open', () => {
      client.send({ type: 'start' });
      client.socket.send(Buffer.alloc(480));
      client.socket.ping();
    });
    client.socket.on('pong', () => received.resolve());
    await client.until('connected', 2);
    client.send({ type: 'test', timestamp: 1 });
    await client.until('test_response');
    expect(fixture.liveStt.session.commands).toEqual([]);
    expect(fixture.liveStt.session.received).toEqual([]);
  });

  it('gets no refinement on the free plan', async () => {
    const free = await fixture.addWorkspace({ plan: 'free' });
    await fund(fixture, free);
    const client = dial({ apiKey: free.key });
    await client.until('connection_established');
    expect(fixture.liveStt.session.options.mayRefine).toBe(false);
  });
});

describe('message to /ws/stt', () => {
  it('carries base64 audio, each with its own format', async () => {
    const client = await established();
    client.send({ type: 'audio', audio: 'AQIDBA==', encoding: 'linear', sample_rate: 48_000, timestamp: 1 });
    client.send({ type: 'audio', audio: '/w==', encoding: 'mulaw', sample_rate: 8_000 });
    await answered(client);
    expect(fixture.liveStt.session.received).toEqual([
      { bytes: [1, 2, 3, 4], format: { encoding: 'linear16', sampleRateHz: 48_000, channels: 1 } },
      { bytes: [255], format: { encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 } },
    ]);
  });

  it('carries telephone mu-law in binary frames, each in a separate buffer', async () => {
    const client = await established();
    for (let frame = 0; frame < 50; frame += 1) client.socket.send(Buffer.alloc(480, frame));
    await answered(client);
    const { received } = fixture.liveStt.session;
    expect(received.map(({ bytes }) => [bytes.length, bytes[0], bytes[479]])).toEqual(
      Array.from({ length: 50 }, (_, frame) => [480, frame, frame]),
    );
    expect(received[0]?.format).toEqual({ encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 });
  });

  it('fails as audio before the session starts', async () => {
    const client = await established();
    fixture.liveStt.session.isStarted = false;
    client.socket.send(Buffer.alloc(480));
    expect(await client.until('error')).toEqual({
      type: 'error',
      code: 'unknown_message_type',
      message: 'unknown message type: audio',
    });
  });

  it("accepts Deepgram's keep-alive, finalise and close messages without a response", async () => {
    const client = await established();
    client.send({ type: 'KeepAlive' });
    client.send({ type: 'Finalize' });
    client.send({ type: 'CloseStream' });
    client.send({ type: 'test', timestamp: 1 });
    await client.until('test_response');
    expect(client.types().slice(-2)).toEqual(['connected', 'test_response']);
    expect(fixture.liveStt.session.commands).toEqual([{ type: 'keepalive' }, { type: 'finalize' }, { type: 'stop' }]);
  });

  it('echoes the timestamp of a test', async () => {
    const client = await established();
    client.send({ type: 'test', message: 'hello', timestamp: 1_700_000_000_123 });
    expect(await client.until('test_response')).toEqual({ type: 'test_response', timestamp: 1_700_000_000_123 });
  });

  it('gets the reason when invalid, and has no effect', async () => {
    const client = await established();
    const wrong: [object | string, string, string][] = [
      ['{', 'MALFORMED_JSON', 'JSON'],
      ['[]', 'unknown_message_type', 'none'],
      ['null', 'unknown_message_type', 'none'],
      [{ type: 'shout' }, 'unknown_message_type', 'unknown message type: shout'],
      [{ type: '__proto__' }, 'unknown_message_type', '__proto__'],
      [{ type: 'audio', encoding: 'linear', sample_rate: 16_000 }, 'VALIDATION_FAILED', 'audio'],
      [{ type: 'audio', audio: 'not base64', encoding: 'linear', sample_rate: 16_000 }, 'VALIDATION_FAILED', 'base64'],
      [{ type: 'audio', audio: 'AQID=', encoding: 'linear', sample_rate: 16_000 }, 'VALIDATION_FAILED', 'base64'],
      [{ type: 'audio', audio: 'AQID', encoding: 'opus', sample_rate: 16_000 }, 'VALIDATION_FAILED', 'encoding'],
      [{ type: 'audio', audio: 'AQID', encoding: 'linear', sample_rate: 11_025 }, 'VALIDATION_FAILED', 'sample_rate'],
      [{ type: 'start', config: { sample_rate: 22_050 } }, 'VALIDATION_FAILED', 'sample_rate'],
      [{ type: 'start', config: { encoding: 'mp3' } }, 'VALIDATION_FAILED', 'encoding'],
      [{ type: 'start', config: { continuous_mode: 'yes' } }, 'VALIDATION_FAILED', 'continuous_mode'],
      [{ type: 'start', config: { audio_enhancement: 'much' } }, 'VALIDATION_FAILED', 'audio_enhancement'],
      [{ type: 'start', config: { utterance_end_ms: '1000' } }, 'VALIDATION_FAILED', 'utterance_end_ms'],
      [{ type: 'start', config: { diarize: true, max_speakers: 'two' } }, 'VALIDATION_FAILED', 'max_speakers'],
      [{ type: 'start', languages: 'en' }, 'VALIDATION_FAILED', 'array'],
      [{ type: 'start', languages: ['en', 'de', 'fr', 'es', 'it', 'pt'] }, 'VALIDATION_FAILED', 'at most 5'],
      [{ type: 'start', context: 'orders' }, 'VALIDATION_FAILED', 'context'],
      [{ type: 'start', context: { terms: [1] } }, 'VALIDATION_FAILED', 'terms'],
    ];
    for (const [index, [message, code, hint]] of wrong.entries()) {
      client.send(message);
      const error = await client.until('error', index + 1);
      expect(error, JSON.stringify(message)).toMatchObject({ code, message: expect.stringContaining(hint) });
    }
    expect(fixture.liveStt.session.commands).toEqual([]);
    expect(fixture.liveStt.session.received).toEqual([]);
  });

  it('starts a session with the specified defaults, clamps and coercions', async () => {
    expect(await started({ type: 'start' })).toEqual({
      type: 'start',
      settings: {
        languages: null,
        encoding: 'linear',
        sampleRateHz: 16_000,
        utteranceEndMs: 1_000,
        isContinuous: true,
        interimEveryMs: null,
        enhancement: 'off',
        diarize: false,
        minSpeakers: null,
        maxSpeakers: null,
        removeFillers: false,
      },
      talk: null,
    });
    const config = {
      encoding: 'mulaw',
      sample_rate: 8_000,
      utterance_end_ms: 300,
      continuous_mode: false,
      interim_results_frequency: 100,
      audio_enhancement: 'adaptive',
      diarize: true,
      min_speakers: 0,
      max_speakers: 3,
      remove_fillers: true,
      no_speech_threshold: 'whatever',
      something_new: 1,
    };
    const context = { general: [{ key: 'domain', value: 'orders' }], text: 'A call.', terms: ['Tandem'] };
    expect(await started({ type: 'start', languages: ['EN', 'hi', 'en'], context, config })).toEqual({
      type: 'start',
      settings: {
        languages: ['en', 'hi'],
        encoding: 'mulaw',
        sampleRateHz: 8_000,
        utteranceEndMs: 1_000,
        isContinuous: false,
        interimEveryMs: 300,
        enhancement: 'adaptive',
        diarize: true,
        minSpeakers: null,
        maxSpeakers: 3,
        removeFillers: true,
      },
      talk: context,
    });
  });

  it('accepts omitted, null and coercible values', async () => {
    const settingsOf = async (message: object) => {
      const command = await started({ type: 'start', ...message });
      return command?.type === 'start' ? command : null;
    };
    for (const languages of [null, [], 'auto', ['auto'], ['AUTO']]) {
      expect((await settingsOf({ languages }))?.settings.languages).toBeNull();
    }
    expect((await settingsOf({ languages: ['auto', 'en'] }))?.settings.languages).toEqual(['en']);
    expect((await settingsOf({ config: { languages: ['en'] } }))?.settings.languages).toEqual(['en']);
    expect((await settingsOf({ config: { remove_fillers: 'yes' } }))?.settings.removeFillers).toBe(false);
    expect((await settingsOf({ config: { min_speakers: 'two' } }))?.settings.minSpeakers).toBeNull();
    expect((await settingsOf({ config: { diarize: null, max_speakers: 2 } }))?.settings.maxSpeakers).toBeNull();
    expect((await settingsOf({ config: { diarize: true, min_speakers: -2 } }))?.settings.minSpeakers).toBeNull();
    expect((await settingsOf({ context: {} }))?.talk).toEqual({ general: [], text: null, terms: [] });
    expect((await settingsOf({ context: null, config: null }))?.talk).toBeNull();
  });

  it('changes only the fields of a config message, clamped', async () => {
    const changes: [object, object][] = [
      [{}, {}],
      [{ languages: null }, { languages: null }],
      [
        { continuous_mode: false, utterance_end_ms: 200 },
        { isContinuous: false, utteranceEndMs: 1_000 },
      ],
      [{ utterance_end_ms: 30_001 }, { utteranceEndMs: 30_000 }],
      [{ utterance_end_ms: null }, { utteranceEndMs: 1_000 }],
      [{ interim_results_frequency: 0 }, { interimEveryMs: 300 }],
      [{ interim_results_frequency: null }, { interimEveryMs: null }],
      [{ diarize: false, max_speakers: 'ignored' }, { diarize: false }],
    ];
    for (const [fields, change] of changes) {
      expect(await started({ type: 'config', ...fields })).toEqual({ type: 'config', change });
    }
    expect(await started({ type: 'stop' })).toEqual({ type: 'stop' });
  });

  async function started(message: object) {
    const client = clients.at(-1) ?? (await established());
    const { commands } = fixture.liveStt.session;
    const before = commands.length;
    client.send(message);
    await answered(client);
    expect(commands, JSON.stringify(client.messages.at(-2))).toHaveLength(before + 1);
    return commands.at(-1);
  }
});

describe('misbehaving client of /ws/stt', () => {
  it('loses its connection after too many invalid messages', async () => {
    const client = await established();
    for (let sent = 0; sent < 300; sent += 1) client.send('?');
    expect(await client.closed).toBe(1008);
    expect(client.messages.filter(({ code }) => code === 'MALFORMED_JSON').length).toBeGreaterThanOrEqual(60);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'RATE_LIMITED' });
    expect(fixture.liveStt.session.endedBy).toBe('disconnected');
  });

  it('loses its connection after too many requests', async () => {
    const client = await established();
    for (let sent = 0; sent < 500; sent += 1) client.send({ type: 'config', languages: null });
    expect(await client.closed).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'RATE_LIMITED' });
    const { endedBy, commands } = fixture.liveStt.session;
    expect(endedBy).toBe('disconnected');
    // On a busy machine the limit grows by one every 100 ms.
    expect(commands.length).toBeGreaterThanOrEqual(100);
    expect(commands.length).toBeLessThan(200);
  });

  it('loses its connection after too many tiny frames', async () => {
    const client = await established();
    for (let sent = 0; sent < 50_000; sent += 1) client.socket.send(Buffer.alloc(1));
    expect(await client.closed).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'RATE_LIMITED' });
    expect(fixture.liveStt.session.received.length).toBeGreaterThanOrEqual(12_000);
    expect(fixture.liveStt.session.received.length).toBeLessThan(50_000);
    expect(fixture.liveStt.session.endedBy).toBe('disconnected');
  });

  it('keeps its connection when audio comes too early, and gets errors while it reads', async () => {
    const client = await established();
    const { session } = fixture.liveStt;
    session.isStarted = false;
    for (let sent = 0; sent < 500; sent += 1) client.socket.send(Buffer.alloc(160));
    await answered(client);
    const errors = client.messages.filter(({ code }) => code === 'unknown_message_type');
    expect(errors.length).toBeGreaterThanOrEqual(60);
    expect(errors.length).toBeLessThan(500);
    session.isStarted = true;
    client.socket.send(Buffer.alloc(160));
    await answered(client);
    expect(session.received).toHaveLength(1);
  });

  it('loses its connection with 1009 after a too large frame', async () => {
    const client = await established();
    client.socket.send(Buffer.alloc(256 * 1024));
    await answered(client);
    client.socket.send(Buffer.alloc(256 * 1024 + 1));
    expect(await client.closed).toBe(1009);
    expect(fixture.liveStt.session.received).toHaveLength(1);
    await sessionsEnd();
  });

  it('loses its connection after an invalid frame or invalid UTF-8', async () => {
    const garbling = await established();
    underlying(garbling).write(GARBAGE);
    expect(await garbling.closed).toBe(1002);
    const latin = await established();
    latin.socket.send(Buffer.from([0x22, 0xe9, 0x22]), { binary: false });
    expect(await latin.closed).toBe(1007);
    await sessionsEnd();
  });

  it('causes no unhandled rejection with garbage after its refusal', async () => {
    const rejected: unknown[] = [];
    const note = (reason: unknown) => rejected.push(reason);
    process.on('unhandledRejection', note);
    try {
      const client = dial({ apiKey: 'sk_nothing-of-the-kind-at-all' });
      // Sent after the error message and before the closing handshake completes.
      client.socket.on('message', () => client.types().at(-1) === 'error' && underlying(client).write(GARBAGE));
      await client.closed;
      const known = await established();
      await answered(known);
    } finally {
      process.off('unhandledRejection', note);
    }
    expect(rejected).toEqual([]);
  });

  it('loses its connection when it does not read', async () => {
    await useServerWith({ sttTimes: { maxBufferedBytes: 1_000 } });
    const client = await established();
    client.socket.pause();
    const { session } = fixture.liveStt;
    const message = { type: 'error' as const, code: 'x', message: 'x'.repeat(100_000) };
    for (let sent = 0; sent < 1_000 && session.endedBy === null; sent += 1) {
      session.options.onMessage(message);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await sessionsEnd();
    expect(session.endedBy).toBe('disconnected');
  });

  it('loses its connection without a pong, but not while it answers', async () => {
    await useServerWith({ sttTimes: { pingEveryMs: 20, pongWithinMs: 500 } });
    const alive = await established();
    const gone = await established({ autoPong: false });
    expect(await gone.closed).toBe(1006);
    await untilTruthy(() => fixture.liveStt.live.length === 1);
    await answered(alive);
  });

  it('ends its session however it disconnects', async () => {
    const leaving: ((client: SttClient) => void)[] = [
      ({ socket }) => socket.close(),
      ({ socket }) => socket.terminate(),
      (client) => underlying(client).resetAndDestroy(),
      (client) => underlying(client).end(),
    ];
    for (const leave of leaving) {
      leave(await established());
      await sessionsEnd();
      expect(fixture.liveStt.session.endedBy).toBe('disconnected');
    }
  });

  it('leaves no session behind when it disconnects while connecting', async () => {
    const before = fixture.liveStt.sessions.length;
    for (let left = 0; left < 20; left += 1) {
      const client = dial({ apiKey: member.key });
      client.socket.once('message', () => client.socket.terminate());
      await client.closed;
    }
    await sessionsEnd();
    for (let open = 0; open < 8; open += 1) {
      await eventually(async () => await established());
    }
    expect(fixture.liveStt.sessions.length).toBeGreaterThanOrEqual(before + 8);
  });
});

describe('closing connection of /ws/stt', () => {
  it('closes when its key is deleted', async () => {
    const client = await established();
    await fixture.call('DELETE', `/developer/api/${member.keyId}`, { as: member });
    expect(await client.closed).toBe(1008);
    expect(fixture.liveStt.session.endedBy).toBe('credentials');
  });

  it("closes with the session's code after the session's last message", async () => {
    const client = await established();
    const { session } = fixture.liveStt;
    session.options.onMessage({ type: 'session_stopped' });
    session.close(1013, 'overloaded');
    expect(await client.closed).toBe(1013);
    expect(client.types().at(-1)).toBe('session_stopped');
  });

  it('closes when the server closes, without waiting for unresponsive clients', async () => {
    await useServerWith({});
    const client = await established();
    const silent = await established();
    silent.socket.pause();
    await fixture.app.close();
    expect(await client.closed).toBe(1008);
    expect(fixture.liveStt.sessions.map(({ endedBy }) => endedBy)).toEqual(['shutdown', 'shutdown']);
  });
});

async function sessionsEnd(): Promise<void> {
  await untilTruthy(() => fixture.liveStt.live.length === 0);
}

/** Waits until the server has processed all earlier messages. */
async function answered(client: SttClient): Promise<void> {
  const timestamp = Math.random();
  client.send({ type: 'test', timestamp });
  await untilTruthy(() => client.messages.some((message) => message.timestamp === timestamp));
}

const GARBAGE = Buffer.alloc(64, 0xff);

function underlying({ socket }: SttClient): Socket {
  if ('_socket' in socket && socket._socket instanceof Socket) return socket._socket;
  throw new Error('the client has no socket');
}

async function plain(path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const request = httpRequest(`${origin}${path}`, { headers, agent: false });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}
