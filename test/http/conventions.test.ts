import { createHash, randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_TYPES } from '../../http/refusals.ts';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';
import { createApiKey, revokeApiKey } from '../../storage/queries/api-keys.ts';
import { type Answer, createHttpFixture, type HttpFixture } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';
import { committedDocument, operationsOf } from './openapi-document.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({ rateLimits: { anonymousPerMinute: 100_000 } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

function expectConventions(answer: Answer): void {
  expect(answer.headers['x-request-id']).toMatch(/^[\w.:-]{1,128}$/);
  expect(Number(answer.headers['x-ratelimit-limit'])).toBeGreaterThan(0);
  expect(Number(answer.headers['x-ratelimit-remaining'])).toBeGreaterThanOrEqual(0);
  expect(Number(answer.headers['x-ratelimit-reset'])).toBeGreaterThan(1_600_000_000);
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
}

function expectRefusal(answer: Answer, status: number, code: string): void {
  expectConventions(answer);
  expect([answer.status, answer.body?.code]).toEqual([status, code]);
  expect(answer.body).toMatchObject({ success: false, request_id: answer.headers['x-request-id'] });
  expect(typeof answer.body.message).toBe('string');
}

describe('error envelope', () => {
  it('defines a type for every status of the catalogue', () => {
    for (const { status } of Object.values(ERROR_CATALOGUE)) expect(ERROR_TYPES[status]).toBeTruthy();
  });

  it('wraps an unknown path', async () => {
    expectRefusal(await fixture.call('GET', '/nowhere'), 404, 'NOT_FOUND');
    expectRefusal(await fixture.call('POST', '/nowhere', { as: null, body: {} }), 404, 'NOT_FOUND');
  });

  it.each(['application/json', 'text/csv'])('wraps an unknown path with any body: %s', async (type) => {
    const answer = await fixture.call('POST', '/nowhere', { body: '{bad', headers: { 'content-type': type } });
    expectRefusal(answer, 404, 'NOT_FOUND');
  });

  it('wraps another method on a known path, with Allow', async () => {
    const answer = await fixture.call('DELETE', '/dialer/click2call');
    expectRefusal(answer, 405, 'METHOD_NOT_ALLOWED');
    expect(answer.headers.allow).toBe('POST, GET, HEAD');
    expectRefusal(await fixture.call('PATCH', '/dialer/pool'), 405, 'METHOD_NOT_ALLOWED');
  });

  it('wraps a body beyond 64 KiB', async () => {
    const body = JSON.stringify({ agent_number: 'x'.repeat(70_000) });
    const headers = { 'content-type': 'application/json' };
    expectRefusal(await fixture.call('POST', '/dialer/click2call', { body, headers }), 413, 'PAYLOAD_TOO_LARGE');
  });

  it.each([
    ['eight', 8, (fields: object) => ({ text: 'Hello.', ...fields }), ''],
    ['thousands of', 30_000, (fields: object) => ({ text: 'Hello.', ...fields }), ''],
    ['eight', 8, (fields: object) => ({ text: 'Hello.', style: fields }), 'style.'],
  ])('names unknown fields, however many: %s', async (_many, count, bodyOf, place) => {
    const fields = Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));
    const { body } = await fixture.call('POST', '/v1/chat/completions', { body: bodyOf(fields) });
    expect(body).toMatchObject({ code: 'VALIDATION_FAILED', message: `${place}f0 is not a known field.` });
    expect(body.details.length).toBeGreaterThanOrEqual(8);
  });

  it('wraps a body that is not JSON', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'nonsense']) {
      const options = { body: 'a=1', headers: { 'content-type': type } };
      expectRefusal(await fixture.call('POST', '/dialer/click2call', options), 415, 'UNSUPPORTED_MEDIA_TYPE');
    }
  });

  it('wraps malformed and endlessly nested JSON', async () => {
    const headers = { 'content-type': 'application/json' };
    for (const body of ['{"a":', '{a:1}', '['.repeat(60_000), '\u0000', 'undefined']) {
      expectRefusal(await fixture.call('POST', '/dialer/click2call', { body, headers }), 400, 'MALFORMED_JSON');
    }
  });

  it('rejects a compressed body with its own code', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const answer = await fixture.call('POST', '/dialer/click2call', { body: gzipSync('{}'), headers });
    expectRefusal(answer, 415, 'UNSUPPORTED_MEDIA_TYPE');
    expect(answer.body.message).toContain('Content-Encoding');
    const plain = { 'content-type': 'application/json', 'content-encoding': 'identity' };
    const identity = await fixture.call('POST', '/dialer/click2call', { body: '{}', headers: plain });
    expectRefusal(identity, 400, 'INVALID_NUMBER');
  });

  it('wraps an undecodable URL', async () => {
    expectRefusal(await fixture.call('GET', '/dialer/click2call/%E0%A4%A'), 400, 'VALIDATION_FAILED');
  });

  it('wraps an absurdly long path segment', async () => {
    expectRefusal(await fixture.call('GET', `/dialer/click2call/${'x'.repeat(3000)}`), 404, 'NOT_FOUND');
  });

  it.each([
    ['/dialer/click2call?stat=bridged&limit=5&sort=', 'stat, sort', 'page, limit, state, from, to'],
    ['/dialer/click2call?limit%5B%5D=5', 'limit[]', 'page, limit, state'],
    ['/dialer/click2call?__proto__=5', '__proto__', 'page, limit, state'],
    ['/dialer/pool?Limit=5', 'Limit', 'workspace_id'],
  ])('names the unknown query parameters of %s, and the known ones', async (url, unknown, known) => {
    const answer = await fixture.call('GET', url);
    expectRefusal(answer, 400, 'VALIDATION_FAILED');
    expect(answer.body.message).toContain(`${unknown} is not a known query parameter. This operation accepts ${known}`);
    expect(answer.body.details.map(({ path }: { path: string }) => path).join(', ')).toBe(unknown);
  });

  it('rejects unknown query parameters on every operation', async () => {
    const operations = operationsOf(await committedDocument()).filter(({ path }) => !path.startsWith('/ws/'));
    for (const { method, path, security } of operations) {
      const as = security?.length === 0 ? null : fixture.owner;
      const url = `${path.replaceAll(/\{\w+\}/g, randomUUID())}?nobody_knows=1`;
      const session = security?.some((scheme) => 'session' in scheme) ? await sessionOf(fixture, fixture.owner) : null;
      const headers: Record<string, string> = session === null ? {} : { authorization: `Bearer ${session}` };
      const asked = url.startsWith('/workspaces/')
        ? url.replace(/^\/workspaces\/[^/?]+/, `/workspaces/${fixture.owner.workspaceId}`)
        : session !== null
          ? `${url}&workspace_id=${fixture.owner.workspaceId}`
          : url;
      const answer = await fixture.call(method as 'GET', asked, { as, headers });
      const details = JSON.stringify(answer.body ?? answer.raw.toString());
      expect([method, path, answer.status], details).toEqual([method, path, 400]);
      expect(details).toContain('nobody_knows is not a known query parameter');
    }
    expect(operations.length).toBeGreaterThan(100);
  });

  it('lists every invalid query parameter', async () => {
    const answer = await fixture.call('GET', '/dialer/click2call?limit=101&page=0&state=ringing');
    expectRefusal(answer, 400, 'VALIDATION_FAILED');
    const paths = answer.body.details.map(({ path }: { path: string }) => path).sort();
    expect(paths).toEqual(['limit', 'page', 'state']);
  });

  it.each([
    ['/dialer/click2call?page=1&page=2', 'page must be sent only once.'],
    ['/dialer/click2call?limit=0', 'limit must be at least 1.'],
    ['/dialer/click2call?limit=101', 'limit must be at most 100.'],
    ['/dialer/click2call?page=two', 'page must be an integer.'],
    ['/dialer/click2call/x?refresh=2', 'refresh must be true or false.'],
    [
      '/dialer/numbers/available?pattern=x',
      'pattern is invalid. Expected: Digits that the number must contain, for example `+9122`. `*` matches any digits.',
    ],
  ])('answers %s with: %s', async (url, message) => {
    const answer = await fixture.call('GET', url);
    expectRefusal(answer, 400, 'VALIDATION_FAILED');
    expect([answer.body.message, answer.body.details.length]).toEqual([message, 1]);
  });

  it('turns a database outage into 503, never 500', async () => {
    await using broken = await createHttpFixture();
    await broken.sql.end({ timeout: 5 });
    const answer = await broken.call('GET', '/dialer/pool');
    expectRefusal(answer, 503, 'STORAGE_UNAVAILABLE');
    expect(answer.headers['retry-after']).toBe(String(answer.body.retry_after));
    expect((await broken.call('GET', '/healthz', { as: null })).status).toBe(200);
  });

  it('turns a full disk into 503, never 500', async () => {
    await using full = await createHttpFixture();
    full.transcriber.onBegin = () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, mkdir'), { code: 'ENOSPC' });
    };
    const answer = await full.call('POST', '/stt', { body: 'RIFF', headers: { 'content-type': 'audio/wav' } });
    expectRefusal(answer, 503, 'STORAGE_UNAVAILABLE');
    expect(answer.body.message).toBe('The disk of the server is full. Try again later.');
  });
});

describe('x-request-id', () => {
  it.each(['trace:abc-1.2', 'task_17', 'desk_4:risk_9', 'uplink_3'])('keeps %j of the client', async (given) => {
    const answer = await fixture.call('GET', '/dialer/pool', { headers: { 'x-request-id': given } });
    expect(answer.headers['x-request-id']).toBe(given);
  });

  it.each(['', 'a b', 'x'.repeat(129), '<script>', 'sk_live_pasted', 'job-sk_live', 'key_sk_live', 'Whsec_a'])(
    'replaces %j',
    async (given) => {
      const answer = await fixture.call('GET', '/dialer/pool', { headers: { 'x-request-id': given } });
      expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    },
  );
});

describe('credentials', () => {
  const refused = async (authorization: string | undefined) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    return await fixture.call('GET', '/dialer/pool', { as: null, headers });
  };

  it.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Basic c2s6',
    'Bearer nope',
    'Bearer sk_unknown',
    'Bearer sk_a sk_b',
    'sk_x',
  ])('answer 401 to %j', async (authorization) => {
    const answer = await refused(authorization);
    expectRefusal(answer, 401, 'UNAUTHORIZED');
    expect(answer.body.error).toBe('Unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  it('accept the scheme in any case', async () => {
    expect((await refused(`bearer ${fixture.owner.key}`)).status).toBe(200);
    expect((await refused(`BEARER   ${fixture.owner.key}`)).status).toBe(200);
  });

  it('answer 401 once revoked or expired', async () => {
    const member = await fixture.addMemberWith('developer');
    expect((await fixture.call('GET', '/dialer/pool', { as: member })).status).toBe(200);
    const { workspaceId, keyId } = member;
    await revokeApiKey(fixture.sql, { workspaceId, id: keyId, now: fixture.now.current });
    expectRefusal(await fixture.call('GET', '/dialer/pool', { as: member }), 401, 'UNAUTHORIZED');

    const key = `sk_${randomUUID()}`;
    await createApiKey(fixture.sql, {
      workspaceId,
      createdByUserId: member.userId,
      name: 'short-lived',
      prefix: 'sk_',
      last4: key.slice(-4),
      keyHash: createHash('sha256').update(key).digest(),
      expiresAt: new Date(fixture.now.current.getTime() + 1000),
      now: fixture.now.current,
    });
    const shortLived = { ...member, key };
    expect((await fixture.call('GET', '/dialer/pool', { as: shortLived })).status).toBe(200);
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 1000);
    expectRefusal(await fixture.call('GET', '/dialer/pool', { as: shortLived }), 401, 'UNAUTHORIZED');
    fixture.now.current = before;
  });

  it('find no workspace after their user left it', async () => {
    const member = await fixture.addMemberWith('developer');
    await fixture.sql`delete from memberships where user_id = ${member.userId}`;
    expectRefusal(await fixture.call('GET', '/dialer/pool', { as: member }), 404, 'WORKSPACE_NOT_FOUND');
  });

  it('let a viewer read but not write', async () => {
    const viewer = await fixture.addMemberWith('viewer');
    expect((await fixture.call('GET', '/dialer/click2call', { as: viewer })).status).toBe(200);
    for (const [method, url] of [
      ['POST', '/dialer/click2call'],
      ['POST', '/dialer/click2call/x/hangup'],
      ['PUT', '/dialer/caller-id'],
      ['POST', '/dialer/numbers'],
      ['DELETE', '/dialer/numbers/%2B911140000001'],
      ['POST', '/dialer/trunks'],
    ] as const) {
      expectRefusal(await fixture.call(method, url, { as: viewer, body: {} }), 403, 'FORBIDDEN');
    }
  });
});

describe('rate limits', () => {
  it('apply to all keys of a workspace together and answer 429', async () => {
    await using limited = await createHttpFixture();
    const owner = await limited.addWorkspace({ plan: 'free' });
    const teammate = await limited.addMemberWith('member', owner.workspaceId);
    for (let used = 1; used <= 10; used++) {
      const { status, headers } = await limited.call('GET', '/dialer/pool', { as: used % 2 ? owner : teammate });
      expect(status).toBe(200);
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': String(10 - used) });
    }
    const answer = await limited.call('GET', '/dialer/pool', { as: owner });
    expectRefusal(answer, 429, 'RATE_LIMITED');
    expect(answer.headers['x-ratelimit-remaining']).toBe('0');
    expect(answer.headers['retry-after']).toBe(String(answer.body.retry_after));
    expect((await limited.call('GET', '/dialer/pool')).status).toBe(200);
  });

  it('report the daily limit once it is nearer than the limit per minute', async () => {
    const plans = { pro: { perMinute: 5, perDay: 2 } };
    await using limited = await createHttpFixture({ rateLimits: { plans } });
    const owner = await limited.addWorkspace({ plan: 'pro' });
    const first = await limited.call('GET', '/dialer/pool', { as: owner });
    expect(first.headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' });
    await limited.call('GET', '/dialer/pool', { as: owner });
    const answer = await limited.call('GET', '/dialer/pool', { as: owner });
    expectRefusal(answer, 429, 'RATE_LIMITED');
    expect(answer.body.retry_after).toBeGreaterThan(3600);
  });

  it('stop key guessing from an address, but not valid keys or health checks', async () => {
    await using limited = await createHttpFixture({ rateLimits: { anonymousPerMinute: 3 } });
    const guess = () =>
      limited.call('GET', '/dialer/pool', { as: null, headers: { authorization: 'Bearer sk_guess' } });
    for (let i = 0; i < 3; i++) expectRefusal(await guess(), 401, 'UNAUTHORIZED');
    expectRefusal(await guess(), 429, 'RATE_LIMITED');
    expectRefusal(await limited.call('GET', '/nowhere', { as: null }), 429, 'RATE_LIMITED');
    expect((await limited.call('GET', '/dialer/pool')).status).toBe(200);
    for (let i = 0; i < 5; i++) expect((await limited.call('GET', '/healthz', { as: null })).status).toBe(200);
  });
});

describe('health', () => {
  it('returns 200 while the process is alive, whatever the state of its dependencies', async () => {
    const up = await fixture.call('GET', '/healthz', { as: null });
    expectConventions(up);
    expect([up.status, up.body]).toEqual([200, { success: true, data: { alive: true } }]);
  });
});
