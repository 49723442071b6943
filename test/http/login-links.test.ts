import { afterAll, beforeAll, expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { createLoginLink, LOGIN_LINK_MS } from '../../storage/queries/login-links.ts';
import { changePassword } from '../../storage/queries/password-changes.ts';
import { passwordResetToken } from '../../storage/queries/password-resets.ts';
import { eventually } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { callWith, type Person, register } from './identity-fixture.ts';

let fixture: HttpFixture;
let ada: Person;
beforeAll(async () => {
  fixture = await createHttpFixture({
    rateLimits: { anonymousPerMinute: 100_000, logins: { failuresPerEmail: 1_000, failuresPerNetwork: 1_000 } },
  });
  ada = await register(fixture, { name: 'Ada' });
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function link({ userId } = ada, of = fixture): Promise<string> {
  return (await createLoginLink(of.sql, { userId, lifetimeMs: LOGIN_LINK_MS, now: of.now.current })).token;
}
const exchange = (token: string, more = {}, of = fixture) =>
  of.call('POST', '/auth/login-link', { as: null, body: { token, ...more } });

it('a login link logs its user in', async () => {
  const { status, body } = await exchange(await link());
  expect([status, body.data.user]).toEqual([200, { id: ada.userId, email: ada.email, name: 'Ada' }]);
  const { body: mine } = await callWith(fixture, body.data.token, ['GET', '/workspaces']);
  expect(mine.data[0].id).toBe(ada.workspaceId);
});

it('a login link sets a cookie for pages of this server', async () => {
  const token = await link();
  const sent = { as: null, body: { token, cookie: true } };
  const foreign = { ...sent, headers: { origin: 'https://evil.example' } };
  expect((await fixture.call('POST', '/auth/login-link', foreign)).body.code).toBe('CROSS_ORIGIN_REQUEST');
  const { body, headers } = await fixture.call('POST', '/auth/login-link', sent);
  expect(Object.keys(body.data).sort()).toEqual(['expires_at', 'user']);
  const cookie = String(headers['set-cookie']).split(';', 1)[0]!;
  expect((await fixture.call('GET', '/workspaces', { as: null, headers: { cookie } })).status).toBe(200);
});

it('a login link works once, even for simultaneous requests', async () => {
  const token = await link();
  const answers = await Promise.all(Array.from({ length: 5 }, () => exchange(token)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401]);
  const { status, body } = await exchange(token);
  expect([status, body.code, body.message]).toEqual([401, 'UNAUTHORIZED', expect.stringContaining('login-link EMAIL')]);
});

it.each([
  ['before its session is stored', true],
  ['after it has ended the sessions', false],
])('a login link opens no session if it crosses a password change %s', async (_, isEarly) => {
  const person = await register(fixture);
  const [before] = await fixture.sql<{ passwordHash: string }[]>`
    select password_hash from users where id = ${person.userId}`;
  let crossing: ReturnType<typeof exchange> | undefined;
  await inTransaction(fixture.sql, async (tx) => {
    const change = () =>
      changePassword(tx, {
        ...{ user: { id: person.userId, ...before! }, passwordHash: 'another', requestId: 'change-1' },
        ...{ action: 'user.password_changed', endSessions: { except: null }, now: fixture.now.current },
      });
    // The link is taken, and its session waits to be stored.
    if (isEarly) await tx`lock table sessions in share row exclusive mode`;
    else await change();
    crossing = exchange(await link(person));
    const isWaiting = eventually(async () => expect(await lockWaits(fixture.sql)).toBeGreaterThan(0));
    await Promise.race([crossing, isWaiting]);
    if (isEarly) await change();
  });
  const { status, body } = (await crossing)!;
  expect([status, body.code]).toEqual([401, 'UNAUTHORIZED']);
  expect(
    await fixture.sql`select 1 from sessions where user_id = ${person.userId} and revoked_at is null`,
  ).toHaveLength(0);
});

it('a login link expires', async () => {
  const [inTime, late] = [await link(), await link()];
  const before = fixture.now.current;
  fixture.now.current = new Date(before.getTime() + LOGIN_LINK_MS - 1);
  expect((await exchange(inTime)).status).toBe(200);
  fixture.now.current = new Date(before.getTime() + LOGIN_LINK_MS);
  expect((await exchange(late)).status).toBe(401);
  fixture.now.current = before;
});

it('a login link fails unless it matches exactly', async () => {
  const token = await link();
  for (const wrong of [`${token}x`, token.slice(0, -1), token.toUpperCase(), 'link_', "' or 1=1 --", 'x\0']) {
    expect((await exchange(wrong)).status).toBe(401);
  }
  for (const wrong of ['', 'x'.repeat(101)]) expect((await exchange(wrong)).status).toBe(400);
  expect((await exchange(token)).status).toBe(200);
});

it('a login link stops working when its user resets the password', async () => {
  const person = await register(fixture);
  const token = await link(person);
  const [user] = await fixture.sql<{ id: number; passwordHash: string }[]>`
    select id, password_hash from users where id = ${person.userId}`;
  const expiresAt = new Date(fixture.now.current.getTime() + 1e6);
  const reset = passwordResetToken(user!, { secret: Buffer.alloc(32, 5), expiresAt });
  const body = { token: reset, new_password: 'seven lanterns at the harbour' };
  expect((await fixture.call('POST', '/auth/password/reset', { as: null, body })).status).toBe(200);
  expect((await exchange(token)).status).toBe(401);
});

it('the database and the log contain no login token', async () => {
  const token = await link();
  await exchange(token);
  await exchange(`${token}x`);
  await fixture.call('GET', `/console/login?token=${token}`, { as: null, headers: { 'x-request-id': token } });
  const rows = await fixture.sql<{ text: string }[]>`select login_links::text as text from login_links`;
  for (const text of [...rows.map((row) => row.text), ...fixture.logLines])
    expect(text).not.toContain(token.slice(5, 25));
});

it('login links limit guesses per network, and ignore successes', async () => {
  await using strict = await createHttpFixture({ rateLimits: { logins: { failuresPerEmail: 2 } } });
  const person = await register(strict);
  for (let i = 0; i < 4; i += 1) expect((await exchange(await link(person, strict), {}, strict)).status).toBe(200);
  const guess = async () => (await exchange('link_wrong', {}, strict)).body.code;
  expect([await guess(), await guess(), await guess()]).toEqual(['UNAUTHORIZED', 'UNAUTHORIZED', 'LOGIN_THROTTLED']);
});
