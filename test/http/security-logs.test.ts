import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** A place in a request that may contain a credential by mistake or in an attack. */
type Place = (secret: string) => {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url?: string;
  headers?: Record<string, string>;
  body?: string;
};

const JSON_TYPE = { 'content-type': 'application/json' };

const PLACES: Record<string, Place> = {
  'the right header': (secret) => ({ headers: { authorization: `Bearer ${secret}` } }),
  'another scheme': (secret) => ({ headers: { authorization: `Token ${secret}` } }),
  'no scheme': (secret) => ({ headers: { authorization: secret } }),
  'the scheme twice': (secret) => ({ headers: { authorization: `Bearer Bearer ${secret}` } }),
  'the user of basic authentication': (secret) => ({ headers: { authorization: `Basic ${base64(`${secret}:`)}` } }),
  'the password of basic authentication': (secret) => ({
    headers: { authorization: `Basic ${base64(`a:${secret}`)}` },
  }),
  'the user of the proxy': (secret) => ({ headers: { 'proxy-authorization': `Basic ${base64(secret)}` } }),
  'X-API-Key': (secret) => ({ headers: { 'x-api-key': secret } }),
  'a cookie': (secret) => ({ headers: { cookie: `session=${secret}` } }),
  'the request id': (secret) => ({ headers: { 'x-request-id': secret } }),
  'the request id, among others': (secret) => ({ headers: { 'x-request-id': `job:${secret}` } }),
  'the user agent': (secret) => ({ headers: { 'user-agent': secret } }),
  'the referrer': (secret) => ({ headers: { referer: `https://a.example/?key=${secret}` } }),
  'the origin': (secret) => ({ headers: { origin: secret } }),
  'the host': (secret) => ({ headers: { host: secret } }),
  'the forwarded address': (secret) => ({ headers: { 'x-forwarded-for': secret } }),
  'the forwarded host and protocol': (secret) => ({
    headers: { 'x-forwarded-host': secret, 'x-forwarded-proto': secret },
  }),
  'the content type': (secret) => ({ method: 'POST', headers: { 'content-type': secret }, body: 'a' }),
  'the content encoding': (secret) => ({
    method: 'POST',
    headers: { ...JSON_TYPE, 'content-encoding': secret },
    body: '{}',
  }),
  'the last event': (secret) => ({ url: '/dialer/click2call/x/stream', headers: { 'last-event-id': secret } }),
  'the query': (secret) => ({ url: `/dialer/pool?apiKey=${secret}&token=${secret}&access_token=${secret}` }),
  'the name of a parameter': (secret) => ({ url: `/dialer/click2call?${secret}=1` }),
  'a parameter with a wrong value': (secret) => ({ url: `/dialer/click2call?limit=${secret}` }),
  'a known path': (secret) => ({ url: `/dialer/click2call/${secret}` }),
  'an unknown path': (secret) => ({ url: `/${secret}` }),
  'the path of a signed URL': (secret) => ({ url: `/media/${secret}?signature=${secret}&expires=${secret}` }),
  'a path that does not decode': (secret) => ({ url: `/%zz${secret}` }),
  'a path that is too long': (secret) => ({ url: `/dialer/click2call/${secret}${'x'.repeat(2_000)}` }),
  'another method': (secret) => ({ method: 'DELETE', url: `/dialer/click2call/${secret}` }),
  'a field of the body': (secret) => ({
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify({ agent_number: secret, callback_secret: secret, api_key: secret, [secret]: secret }),
  }),
  'a body that is not JSON': (secret) => ({ method: 'POST', headers: JSON_TYPE, body: `{"a": ${secret}` }),
  'a form': (secret) => ({
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `key=${secret}`,
  }),
  'a body that is too large': (secret) => ({ method: 'POST', headers: JSON_TYPE, body: secret.repeat(5_000) }),
};

it('credentials never appear in the log, wherever a request contains them', async () => {
  const printed = listenToTheConsole();
  await using fixture = await createHttpFixture({ rateLimits: { anonymousPerMinute: 1_000_000 } });
  const { port } = new URL(await fixture.app.listen({ host: '127.0.0.1', port: 0 }));
  const secrets = [
    fixture.owner.key,
    `sk_${randomBytes(24).toString('base64url')}`,
    jsonWebToken(),
    `whsec_${randomBytes(24).toString('base64')}`,
  ];

  const attempts = Object.values(PLACES).flatMap((place) => secrets.map((secret) => place(secret)));
  const answers: number[] = [];
  for (const request of attempts) answers.push(await ask(fixture, request));
  for (const secret of secrets) {
    for (const bytes of rawRequests(secret)) await exchange(Number(port), bytes);
  }
  expect(answers.filter((status) => status >= 500)).toEqual([]);
  expect(new Set(answers).size).toBeGreaterThan(5);
  fixture.dialer.onPlace = () => Promise.reject(new Error(secrets.join()));
  const placement = { agent_number: '9876543210', customer_number: '9876501234' };
  expect((await fixture.call('POST', '/dialer/click2call', { body: placement })).status).toBe(500);
  await fixture.sql.end({ timeout: 0 });
  for (const request of attempts) await ask(fixture, request);

  expect(fixture.logLines.length).toBeGreaterThan(2 * attempts.length - 20);
  const log = [...fixture.logLines, ...printed].join('\n');
  for (const secret of secrets) {
    const parts = [secret, secret.slice(0, 20), base64(`${secret}:`), base64(secret), encodeURIComponent(secret)];
    for (const part of parts) expect(log).not.toContain(part);
  }
});

async function ask(fixture: HttpFixture, { method = 'GET', url, headers = {}, body }: ReturnType<Place>) {
  const target = url ?? (method === 'GET' ? '/dialer/pool' : '/dialer/click2call');
  const isAnonymous = 'authorization' in headers;
  const answer = await fixture.call(method, target, { headers, ...(isAnonymous && { as: null }), body });
  expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  return answer.status;
}

/** Requests that fail before the framework handles them. */
function rawRequests(secret: string): string[] {
  return [
    `${secret}\r\n\r\n`,
    `GET /?key=${secret} HTTP/9.9\r\n\r\n`,
    `GET /dialer/pool HTTP/1.1\r\nhost: a\r\nx-${secret}\u0000: ${secret}\r\n\r\n`,
    `GET /dialer/pool HTTP/1.1\r\nhost: a\r\nx-a: ${secret.repeat(900)}\r\n\r\n`,
    `CONNECT ${secret}:443 HTTP/1.1\r\nhost: a\r\n\r\n`,
    `GET http://${secret}@a.example/dialer/pool HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
    `POST /dialer/click2call HTTP/1.1\r\nhost: a\r\ncontent-length: ${secret}\r\n\r\n`,
  ];
}

async function exchange(port: number, bytes: string): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  socket.resume().write(bytes);
  await once(socket, 'close');
}

/** Node and libraries may bypass the logger. */
function listenToTheConsole(): string[] {
  const printed: string[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((text) => {
      printed.push(String(text));
      return true;
    });
  }
  for (const level of ['log', 'info', 'warn', 'error', 'debug'] as const) {
    vi.spyOn(console, level).mockImplementation(
      (...parts: unknown[]) => void printed.push(parts.map(String).join(' ')),
    );
  }
  return printed;
}

function jsonWebToken(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part({ sub: '1' })}.${randomBytes(24).toString('base64url')}`;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
