import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, createHttpFixture, type HttpFixture } from './fixture.ts';

const CONSOLE = 'https://console.example';
const PREFLIGHT = { origin: CONSOLE, 'access-control-request-method': 'POST' };

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({ corsOrigins: [CONSOLE, 'http://localhost:5173'] });
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function preflight(url: string, headers: Record<string, string>, of = fixture): Promise<Answer> {
  return await of.call('OPTIONS', url, { as: null, headers });
}

const listOf = (header: unknown) => String(header).split(', ');

describe('security headers of every response', () => {
  const requests: [string, () => Promise<Answer>][] = [
    ['a success', () => fixture.call('GET', '/dialer/pool')],
    ['health', () => fixture.call('GET', '/healthz', { as: null })],
    ['the document', () => fixture.call('GET', '/openapi.json', { as: null })],
    ['no credentials', () => fixture.call('GET', '/dialer/pool', { as: null })],
    ['an unknown address', () => fixture.call('GET', '/nowhere')],
    ['a body too large', () => fixture.call('POST', '/dialer/click2call', { body: { a: 'x'.repeat(70_000) } })],
    ['a URL that does not decode', () => fixture.call('GET', '/%zz')],
    ['a preflight', () => preflight('/dialer/pool', PREFLIGHT)],
  ];

  it.each(requests)('forbid scripts, framing and caching: %s', async (_name, ask) => {
    const { headers } = await ask();
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('server');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it.each(requests)('include a request id and three rate-limit headers: %s', async (_name, ask) => {
    const { headers } = await ask();
    expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    for (const name of ['limit', 'remaining', 'reset']) expect(headers[`x-ratelimit-${name}`]).toMatch(/^\d+$/);
  });

  it('allow documentation pages only their own files', async () => {
    const { headers } = await fixture.call('GET', '/docs/nothing-there', { as: null });
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    const lookalike = await fixture.call('GET', '/docs-of-mine', { as: null });
    expect(lookalike.headers['content-security-policy']).not.toContain('script-src');
  });
});

describe('Strict-Transport-Security', () => {
  const hsts = (answer: Answer) => answer.headers['strict-transport-security'];

  it('requires https, so http omits it', async () => {
    expect(hsts(await fixture.call('GET', '/healthz'))).toBeUndefined();
  });

  it('applies when the public URL uses https', async () => {
    await using behindTls = await createHttpFixture({ publicUrl: 'https://voice.example' });
    expect(hsts(await behindTls.call('GET', '/healthz'))).toBe('max-age=31536000');
    expect(hsts(await behindTls.call('GET', '/nowhere'))).toBe('max-age=31536000');
  });

  it('applies when a trusted proxy reports https, but not when a client does', async () => {
    const headers = { 'x-forwarded-proto': 'https' };
    expect(hsts(await fixture.call('GET', '/healthz', { headers }))).toBe('max-age=31536000');
    const request = { method: 'GET', url: '/healthz', headers, remoteAddress: '192.0.2.1' } as const;
    expect((await fixture.app.inject(request)).headers).not.toHaveProperty('strict-transport-security');
  });
});

describe('page of an allowed origin', () => {
  it('can send credentials and use any method', async () => {
    const answer = await preflight('/dialer/click2call', {
      ...PREFLIGHT,
      'access-control-request-headers': 'authorization,content-type',
    });
    expect(answer.status).toBe(204);
    expect(answer.raw).toHaveLength(0);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': CONSOLE,
      'access-control-allow-headers': 'authorization,content-type',
    });
    expect(listOf(answer.headers['access-control-allow-methods']).sort()).toEqual(
      ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'].sort(),
    );
    expect(listOf(answer.headers.vary)).toContain('Origin');
  });

  it.each([
    ['a success', '/dialer/pool', true, 200],
    ['a refusal of its credentials', '/dialer/pool', false, 401],
    ['an unknown address', '/nowhere', true, 404],
    ['a wrong parameter', '/dialer/click2call?limit=0', true, 400],
  ])('can read %s and its headers', async (_name, url, isOwner, status) => {
    const answer = await fixture.call('GET', url, { headers: { origin: CONSOLE }, ...(isOwner ? {} : { as: null }) });
    expect(answer.status).toBe(status);
    expect(answer.headers['access-control-allow-origin']).toBe(CONSOLE);
    expect(listOf(answer.headers['access-control-expose-headers'])).toEqual(
      expect.arrayContaining([
        'x-request-id',
        'x-ratelimit-limit',
        'x-ratelimit-remaining',
        'x-ratelimit-reset',
        'retry-after',
        'x-credit-balance',
        'x-credit-charged',
        'x-billing-tx',
      ]),
    );
  });

  it('can read a 429, and preflights do not count', async () => {
    await using limited = await createHttpFixture({ corsOrigins: [CONSOLE], rateLimits: { anonymousPerMinute: 1 } });
    for (let asked = 0; asked < 3; asked += 1) {
      expect((await preflight('/dialer/pool', PREFLIGHT, limited)).status).toBe(204);
    }
    const ask = () => limited.call('GET', '/dialer/pool', { as: null, headers: { origin: CONSOLE } });
    expect((await ask()).status).toBe(401);
    const refused = await ask();
    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({ 'access-control-allow-origin': CONSOLE, 'x-ratelimit-remaining': '0' });
    expect((await preflight('/dialer/pool', PREFLIGHT, limited)).status).toBe(204);
  });
});

describe('page of another origin', () => {
  it.each(['https://evil.example', 'https://console.example.evil.example', 'http://console.example', 'null'])(
    'gets no CORS headers: %s',
    async (origin) => {
      const asked = await preflight('/dialer/click2call', { ...PREFLIGHT, origin });
      expect([asked.status, asked.body.code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
      expect(asked.body).toMatchObject({ success: false, request_id: asked.headers['x-request-id'] });
      expect(asked.headers.allow).toBe('POST, GET, HEAD');
      const answer = await fixture.call('GET', '/dialer/pool', { headers: { origin } });
      for (const { headers } of [asked, answer]) {
        expect(headers).not.toHaveProperty('access-control-allow-origin');
        expect(headers).not.toHaveProperty('access-control-expose-headers');
        expect(listOf(headers.vary)).toContain('Origin');
      }
    },
  );

  it('gets no access unless the operator allows its origin', async () => {
    await using closed = await createHttpFixture();
    const asked = await preflight('/dialer/pool', PREFLIGHT, closed);
    expect([asked.status, asked.body.code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
    const unknown = await preflight('/nowhere', PREFLIGHT, closed);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'NOT_FOUND']);
    const answer = await closed.call('GET', '/dialer/pool', { headers: { origin: CONSOLE } });
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('gets access when the operator allows all origins', async () => {
    await using open = await createHttpFixture({ corsOrigins: ['*'] });
    const headers = { ...PREFLIGHT, origin: 'https://anybody.example' };
    expect((await preflight('/dialer/pool', headers, open)).headers['access-control-allow-origin']).toBe('*');
    const answer = await open.call('GET', '/dialer/pool', { headers: { origin: 'https://anybody.example' } });
    expect(answer.headers['access-control-allow-origin']).toBe('*');
  });

  it('does not affect 404 and 405 responses', async () => {
    const answer = await fixture.call('GET', '/nowhere');
    expect([answer.status, answer.body.code]).toEqual([404, 'NOT_FOUND']);
    const other = await fixture.call('DELETE', '/dialer/pool');
    expect([other.status, other.headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});
