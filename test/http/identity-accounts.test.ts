import { randomUUID } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSessionTokens } from '../../http/session-tokens.ts';
import { bootstrap } from '../../storage/bootstrap.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { callWith, PASSWORD, register, sessionOf } from './identity-fixture.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({
    rateLimits: { anonymousPerMinute: 100_000, logins: { accountsPerNetwork: 500 } },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const post = (url: string, body: unknown) => fixture.call('POST', url, { as: null, body });

describe('POST /auth/register', () => {
  it('cuts a long name of the workspace between two characters', async () => {
    const name = `${'x'.repeat(99)}🎉`;
    for (const given of [{ workspace_name: name }, { name }]) {
      const body = { email: `${randomUUID()}@example.com`, password: PASSWORD, ...given };
      const { status, body: answer } = await post('/auth/register', body);
      expect([status, answer.data?.workspace.name]).toEqual([201, name]);
    }
  });

  it('removes characters from the name that would disguise it', async () => {
    const body = { email: `${randomUUID()}@example.com`, password: PASSWORD, name: 'Eve \u202enimda\u202c\u0007 דנה' };
    const { body: answer } = await post('/auth/register', body);
    expect(answer.data.user.name).toBe('Eve nimda דנה');
    expect(answer.data.workspace.name).toBe("Eve nimda דנה's workspace");
  });

  it('creates an account with a free, empty workspace, and logs in', async () => {
    const body = { email: 'Ada@Example.com', password: PASSWORD, name: 'Ada', workspace_name: 'Engines' };
    const { status, body: answer } = await post('/auth/register', body);
    expect(status).toBe(201);
    expect(answer.data).toMatchObject({
      token_type: 'Bearer',
      user: { email: 'ada@example.com', name: 'Ada' },
      workspace: { name: 'Engines', plan: 'free', role: 'owner' },
    });
    const list = await callWith(fixture, answer.data.token, ['GET', '/workspaces']);
    expect(list.body.data).toEqual([
      {
        id: answer.data.workspace.id,
        name: 'Engines',
        role: 'owner',
        plan: 'free',
        is_owner: true,
        balance: 0,
        created_at: fixture.now.current.toISOString(),
      },
    ]);
    expect(list.body.pagination).toEqual({ page: 1, limit: 20, total: 1, pages: 1 });
  });

  it('rejects a taken e-mail address in any case, and creates nothing', async () => {
    const { email } = await register(fixture);
    const before = await fixture.sql`select count(*)::int as n from workspaces`;
    const answer = await post('/auth/register', { email: email.toUpperCase(), password: PASSWORD });
    expect([answer.status, answer.body.code]).toEqual([409, 'EMAIL_TAKEN']);
    expect(await fixture.sql`select count(*)::int as n from workspaces`).toEqual(before);
  });

  it.each([
    ['short', 'at least 10'],
    ['aaaaaaaaaaaaaa', 'repeats'],
    ['1234567890', 'run'],
    ['qwertyuiop', 'run'],
    ['8302 5517 9046', 'only digits'],
    ['Password-2026', 'most common passwords'],
    ['grace.hopper99', 'name or e-mail'],
  ])('rejects the password %s with a hint', async (password, hint) => {
    const answer = await post('/auth/register', { email: 'grace.hopper@example.com', password });
    expect([answer.status, answer.body.code]).toEqual([400, 'WEAK_PASSWORD']);
    expect(answer.body.message).toContain(hint);
  });

  it('accepts a long password of different symbols', async () => {
    const answer = await post('/auth/register', { email: 'symbols@example.com', password: '!#%&/()=?+*~;:' });
    expect(answer.status).toBe(201);
  });

  it.each(['nobody', 'a@', '@b.example', 'a b@c.example', 'a@b.example\n', `${'x'.repeat(65)}@b.example`])(
    'rejects the e-mail address %j',
    async (email) => {
      const answer = await post('/auth/register', { email, password: PASSWORD });
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    },
  );

  it('creates one account from simultaneous requests', async () => {
    const body = { email: 'twice@example.com', password: PASSWORD };
    const answers = await Promise.all(Array.from({ length: 12 }, () => post('/auth/register', body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 11 }, () => 409)]);
  });
});

describe('POST /auth/login', () => {
  it('returns a token with the claims of the contract, signed by EdDSA', async () => {
    const { email, userId } = await register(fixture);
    const { status, body } = await post('/auth/login', { email: email.toUpperCase(), password: PASSWORD });
    expect(status).toBe(200);
    expect(decodeProtectedHeader(body.data.token)).toMatchObject({ alg: 'EdDSA', kid: expect.any(String) });
    const claims = decodeJwt(body.data.token);
    expect(Object.keys(claims).sort()).toEqual(['aud', 'exp', 'iat', 'iss', 'jti', 'sub', 'user_id']);
    expect(claims).toMatchObject({ sub: String(userId), user_id: userId });
    expect(body.data.expires_at).toBe(new Date(claims.exp! * 1000).toISOString());
  });

  it('admits the first owner by the password of the settings', async () => {
    await using first = await createHttpFixture();
    await bootstrap(first.sql, { ownerEmail: null, ownerPassword: PASSWORD, apiKey: null });
    const [owner] = await first.sql<{ email: string }[]>`select email from users order by id limit 1`;
    const body = { email: owner!.email, password: PASSWORD };
    expect((await first.call('POST', '/auth/login', { as: null, body })).status).toBe(200);
  });

  it('answers alike to a wrong password and an unknown address', async () => {
    const { email } = await register(fixture);
    const wrong = await post('/auth/login', { email, password: 'not the password' });
    const unknown = await post('/auth/login', { email: 'nobody@example.com', password: PASSWORD });
    for (const { status, body } of [wrong, unknown]) {
      expect([status, body.code, body.error]).toEqual([401, 'UNAUTHORIZED', 'Unauthorized']);
    }
    expect(wrong.body.message).toBe(unknown.body.message);
  });

  it('rehashes a password that has outdated parameters', async () => {
    const { email, userId } = await register(fixture);
    // "green staple under the ladder" with 8 MiB and one pass.
    const { argon2Sync } = await import('node:crypto');
    const nonce = Buffer.alloc(16, 3);
    const parameters = { message: PASSWORD, nonce, parallelism: 1, tagLength: 32, memory: 8192, passes: 1 };
    const tag = argon2Sync('argon2id', parameters).toString('base64').replace(/=+$/, '');
    const old = `$argon2id$v=19$m=8192,t=1,p=1$${nonce.toString('base64').replace(/=+$/, '')}$${tag}`;
    await fixture.sql`update users set password_hash = ${old} where id = ${userId}`;
    expect((await post('/auth/login', { email, password: PASSWORD })).status).toBe(200);
    const [row] = await fixture.sql<{ passwordHash: string }[]>`select password_hash from users where id = ${userId}`;
    expect(row?.passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect((await post('/auth/login', { email, password: PASSWORD })).status).toBe(200);
  });

  it('throttles an e-mail address per network, even with the right password', async () => {
    await using strict = await createHttpFixture({ rateLimits: { logins: { failuresPerEmail: 3 } } });
    const { email } = await register(strict);
    const other = await register(strict);
    const login = (body: unknown) => strict.call('POST', '/auth/login', { as: null, body });
    const guesses = await Promise.all(
      Array.from({ length: 8 }, (_, i) => login({ email, password: `guess number ${i}` })),
    );
    expect(guesses.map(({ status }) => status).sort()).toEqual([401, 401, 401, 429, 429, 429, 429, 429]);
    const locked = await login({ email: email.toUpperCase(), password: PASSWORD });
    expect([locked.status, locked.body.code]).toEqual([429, 'LOGIN_THROTTLED']);
    expect(Number(locked.headers['retry-after'])).toBe(locked.body.retry_after);
    expect((await login({ email: other.email, password: PASSWORD })).status).toBe(200);
  });

  it('ignores guesses from other networks', async () => {
    await using strict = await createHttpFixture({ rateLimits: { logins: { failuresPerEmail: 3 } } });
    const { email } = await register(strict);
    const login = async (password: string, address: string) => {
      const headers = { 'x-forwarded-for': address };
      return (await strict.call('POST', '/auth/login', { as: null, body: { email, password }, headers })).status;
    };
    const guesses = [];
    for (let i = 0; i < 5; i++) guesses.push(await login(`guess number ${i}`, `2001:db8:1:2::${i + 1}`));
    expect(guesses).toEqual([401, 401, 401, 429, 429]);
    expect(await login(PASSWORD, '2001:db8:1:2::99')).toBe(429);
    expect(await login(PASSWORD, '2001:db8:1:3::1')).toBe(200);
    expect(await login(PASSWORD, '198.51.100.7')).toBe(200);
  });

  it('throttles a network across e-mail addresses', async () => {
    await using strict = await createHttpFixture({ rateLimits: { logins: { failuresPerNetwork: 3 } } });
    const statuses = [];
    for (let i = 0; i < 5; i++) {
      const body = { email: `nobody${i}@example.com`, password: PASSWORD };
      statuses.push((await strict.call('POST', '/auth/login', { as: null, body })).status);
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
  });

  it('forgets failures after the right password', async () => {
    await using strict = await createHttpFixture({ rateLimits: { logins: { failuresPerEmail: 3 } } });
    const { email } = await register(strict);
    const login = (password: string) => strict.call('POST', '/auth/login', { as: null, body: { email, password } });
    for (let round = 0; round < 3; round++) {
      expect((await login('wrong at first')).status).toBe(401);
      expect((await login('and once more')).status).toBe(401);
      expect((await login(PASSWORD)).status).toBe(200);
    }
  });
});

describe('session token', () => {
  it('places calls for the workspace in the query or the body', async () => {
    const token = await sessionOf(fixture, fixture.owner);
    const { workspaceId, userId } = fixture.owner;
    const placement = { agent_number: '9876543210', customer_number: '9876501234' };
    await callWith(fixture, token, ['POST', '/dialer/click2call', { ...placement, workspace_id: workspaceId }]);
    await callWith(fixture, token, ['POST', `/dialer/click2call?workspace_id=${workspaceId}`, placement]);
    expect(fixture.dialer.placed.slice(-2)).toMatchObject([
      { workspaceId, placedVia: 'session', apiKeyId: null, apiKeyName: null, userId },
      { workspaceId, placedVia: 'session', apiKeyId: null, apiKeyName: null, userId },
    ]);
  });

  it('finds no workspace without a valid one of its own', async () => {
    const { token } = await register(fixture);
    const stranger = await fixture.addWorkspace();
    for (const query of ['', '?workspace_id=', `?workspace_id=${stranger.workspaceId}`, '?workspace_id=x%27--']) {
      const answer = await callWith(fixture, token, ['GET', `/dialer/pool${query}`]);
      expect([answer.status, answer.body.code]).toEqual([404, 'WORKSPACE_NOT_FOUND']);
    }
  });

  it.each([[5], [null], [[]], [{ toString: 1 }]])('rejects %j as a workspace id', async (workspaceId) => {
    const token = await sessionOf(fixture, fixture.owner);
    const body = { name: 'k', workspace_id: workspaceId };
    const answer = await callWith(fixture, token, ['POST', '/developer/api', body]);
    expect([answer.status, answer.body.message]).toEqual([400, 'workspace_id must be a string.']);
  });

  it('rejects a request that names two workspaces, with a token or a key', async () => {
    const stranger = await fixture.addWorkspace();
    const url = `/dialer/pool?workspace_id=${stranger.workspaceId}`;
    expect((await fixture.call('GET', url)).body.code).toBe('WORKSPACE_NOT_FOUND');
    const own = `/dialer/pool?workspace_id=${fixture.owner.workspaceId.toUpperCase()}`;
    expect((await fixture.call('GET', own)).status).toBe(200);
    const token = await sessionOf(fixture, fixture.owner);
    const body = { caller_id: '+911140000001', workspace_id: stranger.workspaceId };
    const inQuery = `/dialer/caller-id?workspace_id=${fixture.owner.workspaceId}`;
    expect((await callWith(fixture, token, ['PUT', inQuery, body])).body.code).toBe('WORKSPACE_NOT_FOUND');
  });

  it('counts against the limit of the workspace in the query or the body', async () => {
    const { token, workspaceId } = await register(fixture);
    const inQuery = await callWith(fixture, token, ['GET', `/developer/api?workspace_id=${workspaceId}`]);
    expect(inQuery.headers).toMatchObject({ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '9' });
    const named = { name: 'k', workspace_id: workspaceId };
    const inBody = await callWith(fixture, token, ['POST', '/developer/api', named]);
    expect(inBody.headers).toMatchObject({ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '8' });
  });

  it('expires', async () => {
    const { token, workspaceId } = await register(fixture);
    const before = fixture.now.current;
    const look = () => callWith(fixture, token, ['GET', `/dialer/pool?workspace_id=${workspaceId}`]);
    fixture.now.current = new Date(decodeJwt(token).exp! * 1000 - 1);
    expect((await look()).status).toBe(200);
    fixture.now.current = new Date(decodeJwt(token).exp! * 1000);
    expect((await look()).status).toBe(401);
    fixture.now.current = before;
  });

  it('stops working when its user logs out', async () => {
    const { token, email } = await register(fixture);
    const other = (await post('/auth/login', { email, password: PASSWORD })).body.data.token;
    expect((await callWith(fixture, token, ['POST', '/auth/logout'])).body.data).toEqual({ logged_out: true });
    expect((await callWith(fixture, token, ['GET', '/workspaces'])).status).toBe(401);
    expect((await callWith(fixture, other, ['GET', '/workspaces'])).status).toBe(200);
  });

  it('fails when forged, unsigned or altered', async () => {
    const { token, userId } = await register(fixture);
    const [header, payload, signature] = token.split('.') as [string, string, string];
    const { kid } = decodeProtectedHeader(token);
    const claims = decodeJwt(token);
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const forger = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
    const signed = (head: Partial<JWTHeaderParameters>, key: Parameters<SignJWT['sign']>[0]) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', ...head }).sign(key);
    const [row] = await fixture.sql<{ publicKey: { x: string } }[]>`select public_key from signing_keys`;
    const forged = [
      `${encode({ alg: 'none', typ: 'JWT', kid })}.${payload}.`,
      `${header}.${encode({ ...claims, user_id: userId + 1, sub: String(userId + 1) })}.${signature}`,
      `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
      await signed({ kid }, forger.privateKey),
      await signed({ kid: 'unknown' }, forger.privateKey),
      await signed({ kid: "' or 1=1 --\0" }, forger.privateKey),
      await signed({ jwk: await exportJWK(forger.publicKey) }, forger.privateKey),
      // The public key as an HMAC secret.
      await signed({ kid, alg: 'HS256' }, Buffer.from(row!.publicKey.x, 'base64url')),
      'a.b.c',
      '..',
    ];
    for (const wrong of forged) expect((await callWith(fixture, wrong, ['GET', '/workspaces'])).status).toBe(401);
  });

  it('outlives the retirement of its key, while new tokens use the next key', async () => {
    const { token, email } = await register(fixture);
    const { sql, secrets } = fixture;
    const kid = await createSessionTokens({ sql, secrets }).rotate(fixture.now.current);
    expect((await callWith(fixture, token, ['GET', '/workspaces'])).status).toBe(200);
    const next = (await post('/auth/login', { email, password: PASSWORD })).body.data.token;
    expect(decodeProtectedHeader(next).kid).toBe(kid);
    expect(decodeProtectedHeader(token).kid).not.toBe(kid);
    expect((await callWith(fixture, next, ['GET', '/workspaces'])).status).toBe(200);
  });

  it('uses one key per month, whichever process creates it', async () => {
    const { email } = await register(fixture);
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 31 * 86_400_000);
    const logins = await Promise.all(
      Array.from({ length: 4 }, () => post('/auth/login', { email, password: PASSWORD })),
    );
    fixture.now.current = before;
    for (const { status } of logins) expect(status).toBe(200);
    const active = await fixture.sql`select 1 from signing_keys where retired_at is null`;
    expect(active).toHaveLength(1);
  });
});

describe('private signing key', () => {
  it('gives way to a new key when sealed under another platform secret', async () => {
    await using moved = await createHttpFixture();
    const { token, email } = await register(moved);
    const [{ id } = { id: '' }] = await moved.sql<{ id: string }[]>`select id from signing_keys`;
    const elsewhere = createSecretBox(Buffer.alloc(32, 1)).seal('{}', `signing key ${id}`);
    await moved.sql`update signing_keys set private_key_encrypted = ${elsewhere}`;
    const login = await moved.call('POST', '/auth/login', { as: null, body: { email, password: PASSWORD } });
    expect(login.status).toBe(200);
    for (const good of [token, login.body.data.token]) {
      expect((await callWith(moved, good, ['GET', '/workspaces'])).status).toBe(200);
    }
  });

  it('rests encrypted in the database', async () => {
    await register(fixture);
    const rows = await fixture.sql<{ text: string; publicKey: object }[]>`
      select encode(private_key_encrypted, 'escape') as text, public_key from signing_keys`;
    expect(rows.length).toBeGreaterThan(0);
    for (const { text, publicKey } of rows) {
      expect(text).not.toContain('Ed25519');
      expect(Object.keys(publicKey)).not.toContain('d');
    }
  });
});

it('passwords, tokens and e-mail addresses never appear in the log', async () => {
  await using quiet = await createHttpFixture();
  const { token, email } = await register(quiet);
  await quiet.call('POST', '/auth/login', { as: null, body: { email, password: PASSWORD } });
  await quiet.call('POST', '/auth/login', { as: null, body: { email, password: 'a wrong password' } });
  await quiet.call('POST', '/auth/register', { as: null, body: { email, password: PASSWORD } });
  await callWith(quiet, `${token}x`, ['GET', '/workspaces']);
  const key = await callWith(quiet, token, ['POST', '/developer/api', { name: 'k', workspace_id: '' }]);
  expect(key.status).toBe(404);
  await quiet.sql.end({ timeout: 0 });
  await callWith(quiet, token, ['GET', '/workspaces']);
  const log = quiet.logLines.join('');
  expect(log).toContain('request completed');
  for (const hidden of [PASSWORD, 'a wrong password', email, token, ...token.split('.').slice(1)]) {
    expect(log).not.toContain(hidden);
  }
});
