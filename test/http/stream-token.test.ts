import { EventSource } from 'undici';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { mintStreamToken } from '../../http/stream-tokens.ts';
import { eventually } from '../eventually.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

const PAGE = 'https://crm.example.com';

let fixture: HttpFixture;
let member: Member;
let origin: string;
beforeAll(async () => {
  fixture = await createHttpFixture({ heartbeatMs: 20, corsOrigins: [PAGE] });
  const { workspace } = await seedWorkspace(fixture.sql);
  member = await fixture.addMemberWith('member', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function tokenFor(callId: string, as = member) {
  const { status, body } = await fixture.call('POST', `/dialer/click2call/${callId}/stream-token`, { as });
  expect(status).toBe(201);
  return body.data as { token: string; expires_at: string; url: string };
}

const stream = (callId: string, token: string, headers = {}) =>
  fixture.call('GET', `/dialer/click2call/${callId}/stream?token=${encodeURIComponent(token)}`, { as: null, headers });

async function publishLatest(callId: string): Promise<void> {
  const { body } = await fixture.call('GET', `/dialer/click2call/${callId}/events`, { as: member });
  fixture.dialer.publish(callId, body.data.events.at(-1));
}

it('a stream token opens the stream of a call with a standard EventSource, until the call ends', async () => {
  const { callId } = await seedCall(fixture, { by: member });
  const { url } = await tokenFor(callId);
  expect(url).toMatch(`http://voice.test/dialer/click2call/${callId}/stream?token=st_`);
  const source = new EventSource(url.replace('http://voice.test', origin));
  onTestFinished(() => source.close());
  const received: string[] = [];
  for (const event of ['call.pending', 'call.initiated', 'call.not_answered']) {
    source.addEventListener(
      event,
      (message) => void received.push(`${(message as MessageEvent).lastEventId} ${event}`),
    );
  }
  await eventually(() => expect(received).toEqual(['1 call.pending']));
  await initiate(fixture, callId);
  await publishLatest(callId);
  await eventually(() => expect(received).toEqual(['1 call.pending', '2 call.initiated']));
  await finish(fixture, callId);
  await publishLatest(callId);
  await eventually(() => expect(received.at(-1)).toBe('3 call.not_answered'));
  // It reconnects with the last id, and 204 stops it.
  await eventually(() => expect(source.readyState).toBe(source.CLOSED));
  expect(received).toHaveLength(3);
});

it('a stream token respects Last-Event-ID, and an allowed origin can read the stream', async () => {
  const { callId } = await seedCall(fixture, { by: member });
  await finish(fixture, callId);
  const { token } = await tokenFor(callId);
  const whole = await stream(callId, token, { origin: PAGE });
  expect([whole.status, whole.headers['access-control-allow-origin']]).toEqual([200, PAGE]);
  expect([...whole.raw.toString().matchAll(/^id: (\d+)$/gm)].map(([, id]) => id)).toEqual(['1', '2']);
  const rest = await stream(callId, token, { 'last-event-id': '1' });
  expect([...rest.raw.toString().matchAll(/^id: (\d+)$/gm)].map(([, id]) => id)).toEqual(['2']);
  expect((await stream(callId, token, { 'last-event-id': '2' })).status).toBe(204);
});

it('a stream token opens no other call and no other operation', async () => {
  const { callId } = await seedCall(fixture, { by: member });
  const other = await seedCall(fixture, { by: member });
  const { token } = await tokenFor(callId);
  const answer = await stream(other.callId, token);
  expect([answer.status, answer.body.code]).toEqual([403, 'FORBIDDEN']);
  for (const path of ['', '/events', '/transcript']) {
    const url = `/dialer/click2call/${callId}${path}?token=${token}`;
    expect((await fixture.call('GET', url, { as: null })).status).toBe(401);
  }
  const headers = { authorization: `Bearer ${token}` };
  expect((await fixture.call('GET', `/dialer/click2call/${callId}`, { as: null, headers })).status).toBe(401);
});

it('a stream token expires after five minutes, and fails when altered', async () => {
  const { callId } = await seedCall(fixture, { by: member });
  await finish(fixture, callId);
  const { token, expires_at } = await tokenFor(callId);
  const before = fixture.now.current;
  onTestFinished(() => {
    fixture.now.current = before;
  });
  expect(new Date(expires_at).getTime() - before.getTime()).toBeLessThanOrEqual(300_000);
  fixture.now.current = new Date(new Date(expires_at).getTime() - 1);
  expect((await stream(callId, token)).status).toBe(200);
  const [payload, signature] = token.slice(3).split('.');
  const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString());
  const later = Buffer.from(JSON.stringify({ ...claims, expires: claims.expires + 1e9 })).toString('base64url');
  for (const forged of [`st_${later}.${signature}`, `${token.slice(0, -1)}`, 'st_', `${token}x`, '']) {
    expect((await stream(callId, forged)).status).toBe(401);
  }
  fixture.now.current = new Date(expires_at);
  expect((await stream(callId, token)).body.code).toBe('UNAUTHORIZED');
});

it('a stream token ends with the API key or session that created it', async () => {
  const as = await fixture.addMemberWith('member', member.workspaceId);
  const { callId } = await seedCall(fixture, { by: as });
  await finish(fixture, callId);
  const { token } = await tokenFor(callId, as);
  expect((await stream(callId, token)).status).toBe(200);
  await fixture.sql`update api_keys set revoked_at = now() where id = ${as.keyId}`;
  expect((await stream(callId, token)).status).toBe(401);

  const headers = { authorization: `Bearer ${await sessionOf(fixture, as)}` };
  const url = `/dialer/click2call/${callId}/stream-token?workspace_id=${as.workspaceId}`;
  const minted = await fixture.call('POST', url, { as: null, headers });
  expect((await stream(callId, minted.body.data.token)).status).toBe(200);
  expect((await fixture.call('POST', '/auth/logout', { as: null, headers })).status).toBe(200);
  expect((await stream(callId, minted.body.data.token)).status).toBe(401);
});

it('a stream token never appears in the log', async () => {
  const { callId } = await seedCall(fixture, { by: member });
  await finish(fixture, callId);
  const { token } = await tokenFor(callId);
  await stream(callId, token);
  await stream(callId, `${token}x`);
  expect(fixture.logLines.join()).not.toContain(token.slice(3, 40));
});

it('accepts a token that a node with the previous master key has signed', async () => {
  const { callId } = await seedCall(fixture, { by: member });
  await finish(fixture, callId);
  const { token } = await tokenFor(callId);
  const principal = JSON.parse(Buffer.from(token.slice(3).split('.')[0]!, 'base64url').toString());
  const signedWith = (secret: Buffer) => mintStreamToken({ callId, principal }, { secret, now: fixture.now.current });
  expect((await stream(callId, signedWith(Buffer.alloc(32, 3)).token)).status).toBe(401);
  expect((await stream(callId, signedWith(Buffer.alloc(32, 4)).token)).status).toBe(200);
});
