import { describe, expect, it } from 'vitest';
import { createLimitsInProcess } from '../../storage/limits/limits.ts';
import { createHttpFixture } from './fixture.ts';

const PLACEMENT = { agent_number: '9876543210', customer_number: '9876501234' };

describe('workspace beyond its rate limit', () => {
  it('gets 429 with all rate-limit headers, and nothing happens', async () => {
    await using fixture = await createHttpFixture({ rateLimits: { plans: { free: { perMinute: 1, perDay: 9 } } } });
    const as = await fixture.addWorkspace({ plan: 'free' });
    let placed = 0;
    fixture.dialer.onPlace = () => {
      placed += 1;
      return Promise.reject(new Error('not meant to be reached'));
    };
    await fixture.call('GET', '/dialer/pool', { as });
    for (const [method, url, body] of [
      ['POST', '/dialer/click2call', PLACEMENT],
      ['GET', '/dialer/click2call?limit=0', undefined],
      ['DELETE', '/dialer/numbers/x', undefined],
    ] as const) {
      const { status, headers, body: refusal } = await fixture.call(method, url, { as, body });
      expect([status, refusal.code]).toEqual([429, 'RATE_LIMITED']);
      expect(refusal).toMatchObject({ success: false, error: 'too_many_requests' });
      expect(refusal.request_id).toBe(headers['x-request-id']);
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' });
      const waitS = Number(headers['retry-after']);
      expect(waitS).toBe(refusal.retry_after);
      expect(waitS).toBeGreaterThanOrEqual(1);
      expect(waitS).toBeLessThanOrEqual(60);
      // Retry-After and the reset header agree within the rounding.
      const inS = Number(headers['x-ratelimit-reset']) - Math.floor(Date.now() / 1000);
      expect(Math.abs(inS - waitS)).toBeLessThanOrEqual(2);
    }
    expect(placed).toBe(0);
  });
});

describe('limit of an address', () => {
  it('counts wrong credentials, but not credentials that an outage kept from being checked', async () => {
    await using fixture = await createHttpFixture({ rateLimits: { anonymousPerMinute: 2 } });
    await fixture.sql.end({ timeout: 5 });
    for (let request = 0; request < 3; request += 1) {
      expect(await fixture.call('GET', '/dialer/pool')).toMatchObject({ status: 503 });
    }
    const ask = async (headers: Record<string, string>) =>
      (await fixture.app.inject({ url: '/dialer/pool', headers })).statusCode;
    const wrong = { authorization: 'Bearer neither-a-key-nor-a-token' };
    expect([await ask(wrong), await ask(wrong), await ask(wrong)]).toEqual([401, 401, 429]);
  });
});

describe('clients behind a reverse proxy', () => {
  it.each([
    ['proxy on this host', undefined, '127.0.0.1', true],
    ['listed proxy', ['172.16.0.0/12'], '172.18.0.1', true],
    ['unlisted proxy', undefined, '172.18.0.1', false],
  ] as const)('get separate limits only behind a trusted proxy: %s', async (_name, proxies, proxy, isBelieved) => {
    await using fixture = await createHttpFixture({
      rateLimits: { anonymousPerMinute: 1 },
      ...(proxies && { trustedProxies: proxies }),
    });
    const ask = async (client: string) => {
      // A client may forge the header; the proxy appends the address that it saw.
      const headers = { 'x-forwarded-for': `198.51.100.99, ${client}` };
      return (await fixture.app.inject({ url: '/nowhere', headers, remoteAddress: proxy })).statusCode;
    };
    expect(await ask('192.0.2.1')).toBe(404);
    expect(await ask('192.0.2.1')).toBe(429);
    expect(await ask('192.0.2.2')).toBe(isBelieved ? 404 : 429);
  });
});

describe('limits shared by several servers', () => {
  it('apply across all of them, to keys and addresses', async () => {
    const limits = createLimitsInProcess({ plans: { free: { perMinute: 3, perDay: 9 } }, anonymousPerMinute: 2 });
    await using first = await createHttpFixture({ limits });
    await using second = await createHttpFixture({ limits });
    const anonymous = { as: null };
    expect((await first.call('GET', '/dialer/pool', anonymous)).status).toBe(401);
    expect((await second.call('GET', '/nowhere', anonymous)).status).toBe(404);
    expect((await first.call('GET', '/dialer/pool', anonymous)).status).toBe(429);
    expect((await second.call('GET', '/dialer/pool', anonymous)).status).toBe(429);
    expect((await second.call('GET', '/dialer/pool')).status).toBe(200);
  });
});

describe('user without a free slot', () => {
  it.each([
    ['stt', 'STT_CONCURRENCY_LIMIT', 8],
    ['tts', 'TTS_CONCURRENCY_LIMIT', 5],
    ['llm', 'CHAT_CONCURRENCY_LIMIT', 8],
  ] as const)('gets 429 %2$s for %1$s, with error_code and details.limit', async (kind, code, limit) => {
    const limits = createLimitsInProcess();
    await using fixture = await createHttpFixture({ limits });
    const { userId } = fixture.owner;
    for (let slot = 0; slot < limit; slot += 1) await limits.acquireSlot({ userId, kind });
    // Any route stands for those that use slots.
    fixture.dialer.onPlace = async () => {
      await limits.acquireSlot({ userId, kind });
      return expect.fail('there was a slot');
    };
    const { status, headers, body } = await fixture.call('POST', '/dialer/click2call', { body: PLACEMENT });
    expect(status).toBe(429);
    expect(body).toMatchObject({ success: false, code, error_code: code, details: { limit } });
    expect(headers['retry-after']).toBe(String(body.retry_after));
    expect(Number(headers['x-ratelimit-remaining'])).toBeGreaterThan(0);
    await limits.close();
  });
});
