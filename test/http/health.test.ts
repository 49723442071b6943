import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const TOKEN = 'a-token-that-prometheus-sends';
const STRANGER = '192.0.2.7';

let fixture: HttpFixture;

beforeAll(async () => {
  fixture = await createHttpFixture({
    metricsAccess: { token: TOKEN, allowCidrs: ['127.0.0.0/8', '::1/128', '10.1.0.0/16'] },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Sends from a non-loopback address by default. */
async function ask(url: string, { from = STRANGER, token, method = 'GET', forwarded }: Asked = {}) {
  const headers = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
  };
  return await fixture.app.inject({ method, url, headers, remoteAddress: from });
}

interface Asked {
  from?: string;
  token?: string;
  method?: 'GET' | 'HEAD';
  forwarded?: string;
}

describe('GET /readyz', () => {
  it('returns 200 and every check when all pass', async () => {
    fixture.readiness.checks = [
      { name: 'database', ok: true, reason: null },
      { name: 'disk', ok: true, reason: null },
    ];
    const answer = await ask('/readyz');
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      { success: true, data: { ready: true, checks: fixture.readiness.checks } },
    ]);
  });

  it('returns 503 with every check and the reason of the failed one', async () => {
    fixture.readiness.checks = [
      { name: 'database', ok: true, reason: null },
      { name: 'redis', ok: false, reason: 'It cannot be reached.' },
    ];
    const answer = await ask('/readyz');
    expect(answer.statusCode).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.json()).toMatchObject({
      code: 'NOT_READY',
      message: 'Not ready. redis: It cannot be reached.',
      details: { checks: fixture.readiness.checks },
    });
  });

  it.each(['/healthz', '/readyz'])('answers HEAD %s like GET, without a body', async (url) => {
    fixture.readiness.checks = [{ name: 'database', ok: true, reason: null }];
    const answer = await ask(url, { method: 'HEAD' });
    expect([answer.statusCode, answer.body]).toEqual([200, '']);
    fixture.readiness.checks = [{ name: 'database', ok: false, reason: 'It cannot be reached.' }];
    expect((await ask('/readyz', { method: 'HEAD' })).statusCode).toBe(503);
    expect((await ask('/healthz', { method: 'HEAD' })).statusCode).toBe(200);
  });
});

describe('GET /metrics', () => {
  it.each([
    ['this machine', { from: '127.0.0.1' }],
    ['this machine over IPv6', { from: '::1' }],
    ['this machine as IPv6 writes IPv4 addresses', { from: '::ffff:127.0.0.1' }],
    ['an allowed network', { from: '10.1.2.3' }],
    ['an allowed network behind a proxy', { from: '127.0.0.1', forwarded: '10.1.2.3' }],
    ['anywhere, with the token', { token: TOKEN }],
  ])('serves clients from %s', async (_name, asked) => {
    const answer = await ask('/metrics', asked);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.body).toContain('# TYPE tandem_http_request_duration_seconds histogram');
  });

  it.each([
    ['strangers', {}],
    ['strangers behind a proxy on this machine', { from: '127.0.0.1', forwarded: STRANGER }],
    ['strangers that claim to be on this machine', { forwarded: '127.0.0.1' }],
    ['strangers that claim so through a proxy', { from: '127.0.0.1', forwarded: `127.0.0.1, ${STRANGER}` }],
    ['neighbours of an allowed network', { from: '10.2.0.1' }],
    ['a wrong token', { token: `${TOKEN}x` }],
    ['an API key', { token: 'sk_0123456789abcdef' }],
  ])('rejects %s', async (_name, asked) => {
    const answer = await ask('/metrics', asked);
    expect([answer.statusCode, answer.json().code]).toEqual([401, 'UNAUTHORIZED']);
    expect(answer.body).not.toContain('tandem_');
  });

  it('accepts no token when none is configured', async () => {
    await using closed = await createHttpFixture({ metricsAccess: { token: null, allowCidrs: [] } });
    for (const authorization of ['Bearer ', 'Bearer null', `Bearer ${TOKEN}`]) {
      expect((await closed.call('GET', '/metrics', { as: null, headers: { authorization } })).status).toBe(401);
    }
  });

  it('counts requests by route template, for any ids and unknown paths', async () => {
    const { app } = fixture;
    const headers = { authorization: `Bearer ${fixture.owner.key}` };
    for (const id of ['call_1', 'call_2', '+919811111111']) {
      await app.inject({ url: `/dialer/click2call/${encodeURIComponent(id)}`, headers });
      await app.inject({ url: `/unknown/${id}`, headers });
    }
    const { body } = await ask('/metrics', { token: TOKEN });
    const counts = body.split('\n').filter((line) => line.startsWith('tandem_http_request_duration_seconds_count'));
    expect(counts).toContain(
      'tandem_http_request_duration_seconds_count{method="GET",route="/dialer/click2call/:id",status_class="4xx"} 3',
    );
    expect(counts).toContain(
      'tandem_http_request_duration_seconds_count{method="GET",route="none",status_class="4xx"} 3',
    );
    expect(body).not.toMatch(/call_[12]|9811111111/);
  });
});
