import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createPhoneDesk } from '../../actors/phones/phone-desk.actor.ts';
import { createLogger } from '../../logging.ts';
import { systemClock } from '../../runtime/clock.ts';
import { FakeWebRtc } from '../actors/phones/fake-webrtc.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

let fixture: HttpFixture;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  fixture = await createHttpFixture();
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await fixture[Symbol.asyncDispose]();
});

const mint = (body: object, as = fixture.owner) => fixture.call('POST', '/phone/tokens', { as, body });

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of any shape
type Message = any;

function connect(query: string) {
  const { port } = fixture.app.server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws/phone?${query}`);
  sockets.push(socket);
  const arrived: Message[] = [];
  let wake = () => {};
  socket.on('message', (data) => {
    arrived.push(JSON.parse(data.toString()));
    wake();
  });
  socket.on('error', () => {});
  const closed = new Promise<number>((resolve) => socket.on('close', (code) => resolve(code)));
  const next = async (): Promise<Message> => {
    while (arrived.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return arrived.shift();
  };
  return { socket, next, closed };
}

async function phone() {
  const { body } = await mint({ purpose: 'agent' });
  const connected = connect(`token=${body.data.token}`);
  const welcome = await connected.next();
  const ask = async (message: object | string) => {
    connected.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
    return await connected.next();
  };
  return { ...connected, welcome, ask };
}

describe('GET /phone/colleagues', () => {
  it('lists by name the other users who can have a phone', async () => {
    const { owner } = fixture;
    const [asking, viewer] = [await fixture.addMemberWith('member'), await fixture.addMemberWith('viewer')];
    const [named, unnamed] = [await fixture.addMemberWith('developer'), await fixture.addMemberWith('admin')];
    const rename = ({ userId }: Member, name: string) =>
      fixture.sql`update users set name = ${name} where id = ${userId}`;
    await Promise.all([rename(named, 'Zoe'), rename(owner, 'ada'), rename(unnamed, '')]);
    await fixture.sql`update users set email = 'no.name@example.com' where id = ${unnamed.userId}`;
    const { body } = await fixture.call('GET', '/phone/colleagues', { as: asking });
    expect(body.data).toEqual({
      colleagues: [
        { user_id: owner.userId, name: 'ada' },
        { user_id: unnamed.userId, name: 'no.name@example.com' },
        { user_id: named.userId, name: 'Zoe' },
      ],
      pagination: { page: 1, limit: 20, total: 3, pages: 1 },
    });
    expect((await fixture.call('GET', '/phone/colleagues', { as: viewer })).body.code).toBe('FORBIDDEN');
  });
});

describe('phone token', () => {
  it('carries a user and a purpose, and comes with a WebSocket URL', async () => {
    const { status, body } = await mint({ purpose: 'agent' });
    expect(status).toBe(201);
    expect(body.data).toEqual({
      token: expect.stringMatching(/^pt_boot-1\.[\w-]{43}$/),
      expires_at: expect.any(String),
      url: `ws://voice.test/ws/phone?token=${body.data.token}`,
    });
  });

  it('requires an admin for supervision, and a call of the workspace', async () => {
    const [writer, viewer] = [await fixture.addMemberWith('member'), await fixture.addMemberWith('viewer')];
    expect((await mint({ purpose: 'supervise' }, writer)).body.code).toBe('FORBIDDEN');
    expect((await mint({ purpose: 'agent' }, viewer)).body.code).toBe('FORBIDDEN');
    expect((await mint({ purpose: 'agent' }, writer)).status).toBe(201);
    expect((await mint({ purpose: 'supervise', call_id: 'call_unknown' })).body.code).toBe('CALL_NOT_FOUND');
    expect((await mint({ purpose: 'listen' })).body.code).toBe('VALIDATION_FAILED');
  });

  it('answers 503 with instructions while the WebRTC worker is missing', async () => {
    fixture.webRtc.unavailable = 'Run bin/tandem webrtc install.';
    const { status, body } = await mint({ purpose: 'agent' });
    expect({ status, code: body.code, message: body.message }).toEqual({
      status: 503,
      code: 'WEBRTC_NOT_AVAILABLE',
      message: 'Run bin/tandem webrtc install.',
    });
  });

  it('connects once, and fails when used, wrong or missing', async () => {
    const { body } = await mint({ purpose: 'agent' });
    const first = connect(`token=${body.data.token}`);
    expect(await first.next()).toMatchObject({ id: 1, type: 'welcome', purpose: 'agent', call: null });
    for (const query of [`token=${body.data.token}`, 'token=pt_guessed', 'resume=pr_guessed', '']) {
      const refused = connect(query);
      expect(await refused.next()).toMatchObject({ type: 'error', code: 'AUTH_FAILED' });
      expect(await refused.closed).toBe(1008);
    }
    expect(fixture.logLines.join('')).not.toContain(body.data.token);
  });
});

describe('phone socket', () => {
  it('answers every request by its id, and hostile ones with an error', async () => {
    const { ask } = await phone();
    expect(await ask({ id: 'a', type: 'ping' })).toEqual({ id: 'a', type: 'reply' });
    const dtls = (value: unknown) => ({ role: 'auto', fingerprints: [{ algorithm: 'sha-256', value }] });
    const media = { call_id: 'call_1', transport_id: 'x' };
    const voice = (codec: string, ssrc: number) => ({
      ...{ codecs: [{ mimeType: codec, payloadType: 0 }], encodings: [{ ssrc }] },
    });
    const hostile: [message: object | string, id: unknown, code: string][] = [
      ['{', null, 'MALFORMED_JSON'],
      ['null', null, 'VALIDATION_FAILED'],
      [{ type: 'ping' }, null, 'VALIDATION_FAILED'],
      [{ id: {}, type: 'ping' }, null, 'VALIDATION_FAILED'],
      [{ id: 1, type: '__proto__' }, 1, 'VALIDATION_FAILED'],
      [{ id: 2, type: 'answer' }, 2, 'VALIDATION_FAILED'],
      [{ id: 3, type: 'answer', call_id: 'call_1' }, 3, 'CALL_NOT_LIVE'],
      [{ id: 4, type: 'dtmf', call_id: 'call_1', digit: '12' }, 4, 'VALIDATION_FAILED'],
      [{ id: 5, type: 'create_transport', call_id: 'call_1', direction: 'both' }, 5, 'VALIDATION_FAILED'],
      [{ id: 6, type: 'connect_transport', ...media, dtls_parameters: dtls('zz') }, 6, 'VALIDATION_FAILED'],
      [{ id: 7, type: 'produce', ...media, rtp_parameters: voice('audio/opus', 1) }, 7, 'VALIDATION_FAILED'],
      [{ id: 8, type: 'produce', ...media, rtp_parameters: voice('audio/PCMU', 2 ** 32) }, 8, 'VALIDATION_FAILED'],
      [{ id: 9, type: 'produce', ...media, rtp_parameters: voice('audio/PCMU', 7) }, 9, 'CALL_NOT_LIVE'],
    ];
    for (const [message, id, code] of hostile) expect(await ask(message)).toMatchObject({ id, type: 'error', code });
    expect(await ask({ id: 'b', type: 'ping' })).toEqual({ id: 'b', type: 'reply' });
  });

  it('answers a request that arrives before the phone is found on its node', async () => {
    const { webRtc, logger } = { webRtc: new FakeWebRtc(), logger: createLogger({ level: 'silent' }) };
    const desk = createPhoneDesk({ boot: 'boot-1', webRtc, clock: systemClock, logger });
    const found = Promise.withResolvers<void>();
    const phones = {
      ...desk,
      connect: (...parts: Parameters<typeof desk.connect>) => found.promise.then(() => desk.connect(...parts)),
    };
    await fixture[Symbol.asyncDispose]();
    fixture = await createHttpFixture({ phones });
    await fixture.app.listen({ host: '127.0.0.1', port: 0 });
    const { body } = await mint({ purpose: 'agent' });
    const { socket, next } = connect(`token=${body.data.token}`);
    await once(socket, 'open');
    await new Promise<void>((resolve) => socket.send(JSON.stringify({ id: 'a', type: 'ping' }), () => resolve()));
    // The server reads what has arrived before it answers this request.
    const { port } = fixture.app.server.address() as AddressInfo;
    await fetch(`http://127.0.0.1:${port}/healthz`);
    found.resolve();
    expect(await next()).toMatchObject({ type: 'welcome' });
    expect(await next()).toEqual({ id: 'a', type: 'reply' });
  });

  it('closes after too many messages, and after a too large one', async () => {
    const flooding = await phone();
    for (let i = 0; i < 200; i++) flooding.socket.send('{');
    expect(await flooding.closed).toBe(1008);
    const large = await phone();
    large.socket.send(' '.repeat(65 * 1024));
    expect(await large.closed).toBe(1009);
  });

  it('resumes with the token of its welcome, and replaces the old socket', async () => {
    const first = await phone();
    const second = connect(`resume=${first.welcome.resume_token}`);
    expect(await second.next()).toMatchObject({ type: 'welcome' });
    expect(await first.closed).toBe(4001);
  });

  it('closes after `bye`, and when its key is revoked', async () => {
    const leaving = await phone();
    expect(await leaving.ask({ id: 1, type: 'bye' })).toEqual({ id: 1, type: 'reply' });
    expect(await leaving.closed).toBe(1000);
    const again = connect(`resume=${leaving.welcome.resume_token}`);
    expect(await again.closed).toBe(1008);

    const member = await fixture.addMemberWith('member');
    const { body } = await mint({ purpose: 'agent' }, member);
    const revoked = connect(`token=${body.data.token}`);
    await revoked.next();
    const late = await mint({ purpose: 'agent' }, member);
    await fixture.call('DELETE', `/developer/api/${member.keyId}`);
    expect(await revoked.closed).toBe(1008);
    expect(await connect(`token=${late.body.data.token}`).closed).toBe(1008);
  });

  it('closes when its user gets a role that cannot create its token', async () => {
    const admin = await fixture.addMemberWith('admin');
    const [supervising, ringing] = await Promise.all(
      ['supervise', 'agent'].map(async (purpose) => {
        const client = connect(`token=${(await mint({ purpose }, admin)).body.data.token}`);
        await client.next();
        return client;
      }),
    );
    const setRole = (role: string) =>
      fixture.call('PATCH', `/workspaces/${admin.workspaceId}/members/${admin.userId}`, { body: { role } });
    await setRole('developer');
    expect(await supervising!.closed).toBe(1008);
    ringing!.socket.send(JSON.stringify({ id: 1, type: 'ping' }));
    expect(await ringing!.next()).toEqual({ id: 1, type: 'reply' });
    await setRole('viewer');
    expect(await ringing!.closed).toBe(1008);
  });
});
