import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClientOptions, WebSocket } from 'ws';
import { topUp } from '../../storage/ledger.ts';
import { eventually } from '../eventually.ts';
import { seedTrunk, seedWorkspace, USD } from '../storage/seed.ts';
import { type Answer, createHttpFixture, type HttpFixture } from './fixture.ts';
import { PASSWORD, type Person, register, sessionOf } from './identity-fixture.ts';
import { seedCall } from './seed-calls.ts';
import { connectStt } from './stt-client.ts';

const HOST = 'voice.test';
const OWN_PAGE = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
const CORS_PAGE = 'https://crm.example.com';

let fixture: HttpFixture;
let origin: string;
let ada: Person;
beforeAll(async () => {
  fixture = await createHttpFixture({
    corsOrigins: [CORS_PAGE],
    rateLimits: { anonymousPerMinute: 100_000, logins: { accountsPerNetwork: 500 } },
  });
  origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  ada = await register(fixture);
});
afterAll(() => fixture[Symbol.asyncDispose]());

type Method = Parameters<HttpFixture['call']>[0];

function send(method: Method, url: string, { cookie = ada.token, body, ...headers }: Record<string, unknown> = {}) {
  const sent = { host: HOST, cookie: `theme=dark; tandem_session=${cookie}`, ...headers } as Record<string, string>;
  return fixture.call(method, url, { as: null, headers: sent, ...(body === undefined ? {} : { body }) });
}

const look = (headers: Record<string, unknown> = {}) => send('GET', '/workspaces', headers);
const change = (headers: Record<string, unknown> = {}) =>
  send('POST', '/user/onboarding', { body: { marketing_consent: false }, ...headers });
const logIn = (headers: Record<string, string> = {}, more = {}) =>
  fixture.call('POST', '/auth/login', {
    as: null,
    headers: { host: HOST, ...headers },
    body: { email: ada.email, password: PASSWORD, cookie: true, ...more },
  });
const outcome = ({ status, body }: Answer) => [status, body?.code];
const REFUSED = [403, 'CROSS_ORIGIN_REQUEST'];

describe('login with cookie: true', () => {
  it('puts the token into an HttpOnly cookie and not into the body', async () => {
    const { status, body, headers } = await logIn();
    expect(status).toBe(200);
    expect(Object.keys(body.data).sort()).toEqual(['expires_at', 'user']);
    const [pair, ...attributes] = String(headers['set-cookie']).split('; ');
    const lifetimeS = Math.floor((Date.parse(body.data.expires_at) - fixture.now.current.getTime()) / 1000);
    expect(attributes).toEqual(['Path=/', `Max-Age=${lifetimeS}`, 'HttpOnly', 'SameSite=Lax']);
    const cookie = pair!.replace('tandem_session=', '');
    expect((await look({ cookie })).status).toBe(200);
    expect(JSON.stringify(body)).not.toContain(cookie);
  });

  it('sets the cookie on registration too', async () => {
    const body = { email: 'eve@example.com', password: PASSWORD, cookie: true };
    const { status, body: answer, headers } = await fixture.call('POST', '/auth/register', { as: null, body });
    expect(status).toBe(201);
    expect(answer.data).not.toHaveProperty('token');
    const cookie = /^tandem_session=([^;]+)/.exec(String(headers['set-cookie']))![1];
    expect((await look({ cookie })).body.data[0].id).toBe(answer.data.workspace.id);
  });

  it('omits the cookie by default', async () => {
    const { headers, body } = await logIn({}, { cookie: false });
    expect(headers).not.toHaveProperty('set-cookie');
    expect(body.data.token_type).toBe('Bearer');
  });

  it('marks the cookie Secure for https clients, directly or through a trusted proxy', async () => {
    const isSecure = async (of: HttpFixture, headers: Record<string, string>, remoteAddress = '127.0.0.1') => {
      const payload = { email: person.email, password: PASSWORD, cookie: true };
      const answer = await of.app.inject({ method: 'POST', url: '/auth/login', headers, remoteAddress, payload });
      expect(answer.statusCode).toBe(200);
      return String(answer.headers['set-cookie']).endsWith('; Secure');
    };
    await using inHttps = await createHttpFixture({ publicUrl: 'https://voice.example' });
    const person = await register(inHttps);
    expect(await isSecure(inHttps, {})).toBe(true);
    await using local = await createHttpFixture({ publicUrl: null });
    Object.assign(person, await register(local));
    expect(await isSecure(local, {})).toBe(false);
    expect(await isSecure(local, { 'x-forwarded-proto': 'https' })).toBe(true);
    expect(await isSecure(local, { 'x-forwarded-proto': 'https' }, '192.0.2.7')).toBe(false);
  });

  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['a sibling site', { 'sec-fetch-site': 'same-site', origin: 'http://other.voice.test' }],
    ['a foreign origin', { origin: 'https://evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
  ])('rejects %s, which could log its visitors in as an attacker', async (_name, headers) => {
    const answer = await logIn(headers);
    expect(outcome(answer)).toEqual(REFUSED);
    expect(answer.headers).not.toHaveProperty('set-cookie');
  });

  it('accepts a page of this server', async () => {
    expect((await logIn(OWN_PAGE)).status).toBe(200);
    expect((await logIn({ origin: `http://${HOST}` })).status).toBe(200);
  });
});

describe('request with the session cookie', () => {
  it('acts for its user in the named workspace', async () => {
    expect((await look()).body.data[0]).toMatchObject({ id: ada.workspaceId, role: 'owner' });
    const wallet = await send('GET', `/billing/wallet?workspace_id=${ada.workspaceId}`, OWN_PAGE);
    expect(wallet.status).toBe(200);
    expect((await change(OWN_PAGE)).status).toBe(200);
    const key = { name: 'console', workspace_id: ada.workspaceId };
    expect((await send('POST', '/developer/api', { ...OWN_PAGE, body: key })).status).toBe(201);
  });

  it.each<[string, Record<string, string>, number]>([
    ['a page of this server', OWN_PAGE, 200],
    ['its own origin', { origin: `http://${HOST}` }, 200],
    ['its own origin over a proxy that ends https', { origin: `https://${HOST}` }, 200],
    ['its own origin with the default port', { origin: 'http://voice.test', host: 'voice.test:80' }, 200],
    ['the public origin, whatever the Host header is', { origin: 'http://voice.test', host: '10.0.0.7:8080' }, 200],
    ['neither header', {}, 403],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['another site that claims our origin', { 'sec-fetch-site': 'cross-site', origin: `http://${HOST}` }, 403],
    ['a sibling site', { 'sec-fetch-site': 'same-site', origin: `http://${HOST}:5173` }, 403],
    ['the address bar', { 'sec-fetch-site': 'none' }, 403],
    ['a form of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 403],
    ['two values of one header', { 'sec-fetch-site': 'same-origin, cross-site' }, 403],
    ['a foreign origin', { origin: 'https://evil.example' }, 403],
    ['another port', { origin: `http://${HOST}:8081` }, 403],
    ['a host that ends as ours', { origin: `http://evil${HOST}` }, 403],
    ['a sandboxed page', { origin: 'null' }, 403],
    ['something that is not an origin', { origin: 'javascript://voice.test' }, 403],
    ['an origin that CORS allows', { origin: CORS_PAGE }, 403],
  ])('changes data only from pages of this server: %s', async (_name, headers, status) => {
    const answer = await change(headers);
    expect(outcome(answer)).toEqual(status === 200 ? [200, undefined] : REFUSED);
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it.each<[string, Record<string, string>, number]>([
    ['without either header', {}, 200],
    ['from the address bar', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, 200],
    ['by a link of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 200],
    ['from a script of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }, 403],
    ['from an image of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
    ['from a script of a sibling site', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }, 403],
    ['from a foreign origin', { origin: 'https://evil.example' }, 403],
    ['from an origin that CORS allows', { origin: CORS_PAGE }, 403],
  ])('reads data only without foreign scripts: %s', async (_name, headers, status) => {
    const answer = await look(headers);
    expect(outcome(answer)).toEqual(status === 200 ? [200, undefined] : REFUSED);
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('accepts a forwarded host only from a trusted proxy', async () => {
    const headers = { origin: 'https://pbx.example', 'x-forwarded-host': 'pbx.example', 'x-forwarded-proto': 'https' };
    expect((await change(headers)).status).toBe(200);
    const request = { method: 'POST', url: '/user/onboarding', remoteAddress: '192.0.2.9', payload: {} } as const;
    const cookie = `tandem_session=${ada.token}`;
    const forged = await fixture.app.inject({ ...request, headers: { host: HOST, cookie, ...headers } });
    expect(forged.json().code).toBe('CROSS_ORIGIN_REQUEST');
  });

  it('rejects a plain http page once the server has an https address', async () => {
    await using inHttps = await createHttpFixture({ publicUrl: 'https://voice.example' });
    const { token } = await register(inHttps);
    const post = (from: string) =>
      inHttps.call('POST', '/user/onboarding', {
        as: null,
        headers: { host: 'voice.example', cookie: `tandem_session=${token}`, origin: from },
        body: {},
      });
    expect((await post('https://voice.example')).status).toBe(200);
    expect(outcome(await post('http://voice.example'))).toEqual(REFUSED);
  });

  it('ignores the cookie beside an Authorization header, valid or not', async () => {
    const bearer = { authorization: `Bearer ${fixture.owner.key}`, origin: 'https://evil.example' };
    expect((await look(bearer)).body.data[0].id).toBe(fixture.owner.workspaceId);
    expect((await change(bearer)).status).toBe(200);
    for (const authorization of ['Bearer sk_wrong', 'Bearer a.b.c', 'Basic YTpi', '']) {
      expect((await look({ authorization, ...OWN_PAGE })).status).toBe(401);
    }
  });

  it('rejects two different cookies, and accepts a repeated one', async () => {
    const { token } = await register(fixture);
    const two = await look({ cookie: `${ada.token}; tandem_session=${token}` });
    expect([...outcome(two), two.body.message]).toEqual([401, 'UNAUTHORIZED', expect.stringContaining('several')]);
    expect((await look({ cookie: `${ada.token}; tandem_session=${ada.token}` })).status).toBe(200);
  });

  it.each([
    ['an API key', () => fixture.owner.key],
    ['nothing', () => ''],
    ['a changed token', () => `${ada.token.slice(0, -4)}AAAA`],
    ['text', () => '"><script>'],
  ])('rejects %s as a session', async (_name, cookie) => {
    expect(outcome(await look({ cookie: cookie(), ...OWN_PAGE }))).toEqual([401, 'UNAUTHORIZED']);
  });

  it('counts a wrong cookie against the address', async () => {
    await using strict = await createHttpFixture({ rateLimits: { anonymousPerMinute: 2 } });
    const guess = () => strict.call('GET', '/workspaces', { as: null, headers: { cookie: 'tandem_session=a.b.c' } });
    expect([(await guess()).status, (await guess()).status, (await guess()).status]).toEqual([401, 401, 429]);
  });
});

describe('logout', () => {
  it('ends the session and clears the cookie', async () => {
    const { token: cookie } = await register(fixture);
    expect(outcome(await send('POST', '/auth/logout', { cookie }))).toEqual(REFUSED);
    const { status, headers } = await send('POST', '/auth/logout', { cookie, ...OWN_PAGE });
    expect(status).toBe(200);
    expect(headers['set-cookie']).toBe('tandem_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax');
    expect((await look({ cookie })).status).toBe(401);
  });

  it('keeps the cookie when the token is in the Authorization header', async () => {
    const { token } = await register(fixture);
    const { headers } = await send('POST', '/auth/logout', { authorization: `Bearer ${token}` });
    expect(headers).not.toHaveProperty('set-cookie');
    expect((await look()).status).toBe(200);
  });
});

describe('event stream with the session cookie', () => {
  it('opens, and ends when its user logs out', async () => {
    const { workspace } = await seedWorkspace(fixture.sql);
    const member = await fixture.addMemberWith('member', workspace.id);
    await seedTrunk(fixture.sql, { workspaceId: member.workspaceId });
    const cookie = `tandem_session=${await sessionOf(fixture, member)}`;
    const { callId } = await seedCall(fixture, { by: member });
    const url = `${origin}/dialer/click2call/${callId}/stream?workspace_id=${member.workspaceId}`;
    const foreign = { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' };
    expect((await fetch(url, { headers: foreign })).status).toBe(403);
    const stream = await fetch(url, { headers: { cookie, ...OWN_PAGE } });
    expect(stream.status).toBe(200);
    let received = '';
    let isLoggedOut = false;
    for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
      received += chunk;
      if (isLoggedOut || !received.includes('call.pending')) continue;
      isLoggedOut = true;
      await fetch(`${origin}/auth/logout`, { method: 'POST', headers: { cookie, origin } });
    }
    expect(received).toContain('call.pending');
  });
});

describe('WebSocket with the session cookie', () => {
  const query = { workspace_id: '' };
  beforeAll(async () => {
    query.workspace_id = ada.workspaceId;
    const amountNano = 5n * USD;
    const payment = { paymentType: 'admin_bonus', operationKey: 'fund' } as const;
    await topUp(fixture.sql, { workspaceId: ada.workspaceId, amountNano, ...payment });
  });

  const cookieOf = (token: string) => `tandem_session=${token}`;

  async function refusalOf(path: string, options: ClientOptions): Promise<[number, string]> {
    const socket = new WebSocket(`${origin.replace('http', 'ws')}${path}`, options);
    const refused = once(socket, 'unexpected-response') as Promise<[unknown, IncomingMessage]>;
    const response = await Promise.race([refused.then(([, answer]) => answer), once(socket, 'open').then(() => null)]);
    if (response === null) {
      socket.terminate();
      return [101, 'opened'];
    }
    const body = JSON.parse(Buffer.concat(await response.toArray()).toString());
    return [response.statusCode!, body.code];
  }

  it('opens for a page of this server, and closes when its user logs out', async () => {
    for (const headers of [{ origin }, OWN_PAGE] as Record<string, string>[]) {
      const token = await sessionOf(fixture, { ...fixture.owner, userId: ada.userId });
      const client = connectStt(origin, query, { headers: { cookie: cookieOf(token), ...headers } });
      await client.until('connected', 2);
      await fetch(`${origin}/auth/logout`, { method: 'POST', headers: { cookie: cookieOf(token), origin } });
      await eventually(() => expect(client.socket.readyState).toBe(WebSocket.CLOSED));
    }
  });

  it.each<[string, Record<string, string>]>([
    ['a foreign origin', { origin: 'https://evil.example' }],
    ['an origin that CORS allows', { origin: CORS_PAGE }],
    ['another port', { origin: 'http://127.0.0.1:1' }],
    ['a sandboxed page', { origin: 'null' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['no page', {}],
  ])('rejects the cookie for %s', async (_name, headers) => {
    for (const path of ['/ws/stt', '/ws/tts']) {
      const url = `${path}?workspace_id=${ada.workspaceId}`;
      expect(await refusalOf(url, { headers: { cookie: cookieOf(ada.token), ...headers } })).toEqual(REFUSED);
    }
  });

  it('opens from any page with a key, with or without a cookie', async () => {
    const headers = { cookie: cookieOf(ada.token), origin: 'https://crm.example.com' };
    const { sql } = fixture;
    const { workspaceId } = fixture.owner;
    await topUp(sql, { workspaceId, amountNano: USD, paymentType: 'admin_bonus', operationKey: 'fund owner' });
    const client = connectStt(origin, { apiKey: fixture.owner.key }, { headers });
    expect((await client.until('connection_established')).user_id).toBe(fixture.owner.userId);
    client.socket.terminate();
  });

  it('rejects two different cookies', async () => {
    const cookie = `${cookieOf(ada.token)}; ${cookieOf('a.b.c')}`;
    expect(await refusalOf('/ws/stt', { headers: { cookie, origin } })).toEqual([401, 'UNAUTHORIZED']);
  });

  it('requires the token of POST /phone/tokens for a phone', async () => {
    const { port } = fixture.app.server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws/phone`, { headers: { cookie: cookieOf(ada.token) } });
    const [data] = await once(socket, 'message');
    expect(JSON.parse(String(data)).code).toBe('AUTH_FAILED');
  });
});

it('the session cookie never appears in the log', async () => {
  await look();
  await change({ 'sec-fetch-site': 'cross-site' });
  expect(fixture.logLines.join('')).not.toContain(ada.token.split('.')[2]);
});
