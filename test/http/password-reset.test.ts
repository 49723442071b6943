import { afterAll, beforeAll, expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { hashPassword } from '../../storage/passwords.ts';
import { changePassword } from '../../storage/queries/password-changes.ts';
import { passwordResetToken } from '../../storage/queries/password-resets.ts';
import { eventually } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { callWith, PASSWORD, register } from './identity-fixture.ts';

const SECRET = Buffer.alloc(32, 5);
const PREVIOUS_SECRET = Buffer.alloc(32, 4);
const NEW_PASSWORD = 'seven lanterns at the harbour';
const HOUR_MS = 3_600_000;

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({ rateLimits: { anonymousPerMinute: 100_000 } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** A token as `tandem users reset-password` creates it. */
async function tokenOf(userId: number, secret = SECRET): Promise<string> {
  const [user] = await fixture.sql<{ passwordHash: string | null }[]>`
    select password_hash from users where id = ${userId}`;
  const expiresAt = new Date(fixture.now.current.getTime() + HOUR_MS);
  return passwordResetToken({ id: userId, passwordHash: user!.passwordHash }, { secret, expiresAt });
}

const reset = (token: string, password = NEW_PASSWORD) =>
  fixture.call('POST', '/auth/password/reset', { as: null, body: { token, new_password: password } });
const login = (email: string, password: string) =>
  fixture.call('POST', '/auth/login', { as: null, body: { email, password } });

it('a password reset ends all sessions of the user, and goes to the audit log of each workspace', async () => {
  const { email, userId, token: session, workspaceId } = await register(fixture);
  const other = (await login(email, PASSWORD)).body.data.token;
  const token = await tokenOf(userId);
  const answer = await reset(token);
  expect([answer.status, answer.body.data]).toEqual([200, { password_reset: true }]);
  for (const ended of [session, other]) {
    expect((await callWith(fixture, ended, ['GET', '/workspaces'])).status).toBe(401);
  }
  expect((await login(email, PASSWORD)).status).toBe(401);
  expect((await login(email, NEW_PASSWORD)).status).toBe(200);
  const audited = await fixture.sql`
    select workspace_id, actor_user_id, target_type, target_id, details from audit_log
    where action = 'user.password_reset' and target_id = ${String(userId)}`;
  expect(audited).toEqual([
    { workspaceId, actorUserId: userId, targetType: 'user', targetId: String(userId), details: {} },
  ]);
  for (const secret of [token, NEW_PASSWORD, PASSWORD]) expect(fixture.logLines.join('')).not.toContain(secret);
});

it.each([
  ['before the login stores its session', true],
  ['after it has ended the sessions', false],
])('a login with the old password opens no session if it crosses the reset %s', async (_, isEarly) => {
  const { email, userId } = await register(fixture);
  const [before] = await fixture.sql<{ passwordHash: string }[]>`select password_hash from users where id = ${userId}`;
  const passwordHash = await hashPassword(NEW_PASSWORD);
  let crossing: ReturnType<typeof login> | undefined;
  await inTransaction(fixture.sql, async (tx) => {
    const change = () =>
      changePassword(tx, {
        ...{ user: { id: userId, ...before! }, passwordHash, action: 'user.password_reset', requestId: 'reset-1' },
        ...{ endSessions: { except: null }, now: fixture.now.current },
      });
    // The login has checked the password, and waits to store its session.
    if (isEarly) await tx`lock table sessions in share row exclusive mode`;
    else await change();
    crossing = login(email, PASSWORD);
    await eventually(async () => expect(await lockWaits(fixture.sql)).toBeGreaterThan(0));
    if (isEarly) await change();
  });
  const { status, body } = (await crossing)!;
  expect([status, body.code]).toEqual([401, 'UNAUTHORIZED']);
  expect(await fixture.sql`select 1 from sessions where user_id = ${userId} and revoked_at is null`).toHaveLength(0);
  expect((await login(email, NEW_PASSWORD)).status).toBe(200);
});

it('a reset token works once, even for simultaneous requests, and invalidates earlier ones', async () => {
  const { userId } = await register(fixture);
  const [earlier, token] = [await tokenOf(userId), await tokenOf(userId)];
  const answers = await Promise.all(Array.from({ length: 4 }, (_, i) => reset(token, `${NEW_PASSWORD} ${i}`)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
  for (const used of [token, earlier]) {
    const { status, body } = await reset(used);
    expect([status, body.code]).toEqual([400, 'INVALID_RESET_TOKEN']);
  }
});

it('a reset token fails when expired, altered, for another user or signed by another server', async () => {
  const { email, userId } = await register(fixture);
  const token = await tokenOf(userId);
  const [id, expires, signature] = token.split('.');
  const refused = [
    await tokenOf(userId, Buffer.alloc(32, 6)),
    `${id}.${Number(expires) + 1}.${signature}`,
    `${(await register(fixture)).userId}.${expires}.${signature}`,
    `999999999.${expires}.${signature}`,
    `${id}.${expires}.${'A'.repeat(43)}`,
    '',
    'x',
  ];
  const before = fixture.now.current;
  for (const each of refused) {
    expect((await reset(each)).body).toMatchObject({ code: 'INVALID_RESET_TOKEN' });
  }
  fixture.now.current = new Date(before.getTime() + HOUR_MS);
  expect((await reset(token)).body).toMatchObject({ code: 'INVALID_RESET_TOKEN' });
  fixture.now.current = before;
  expect((await login(email, PASSWORD)).status).toBe(200);
});

it('a weak password fails and leaves the token valid', async () => {
  const { userId } = await register(fixture);
  const token = await tokenOf(userId);
  const weak = await reset(token, 'password');
  expect([weak.status, weak.body.code]).toEqual([400, 'WEAK_PASSWORD']);
  expect((await reset(token)).status).toBe(200);
});

it('a browser gets a page for each error, and other clients get JSON', async () => {
  const { userId } = await register(fixture);
  const token = await tokenOf(userId);
  const headers = { accept: 'text/html,*/*;q=0.8', 'content-type': 'application/x-www-form-urlencoded' };
  const submit = (fields: Record<string, string>) =>
    fixture.call('POST', '/auth/password/reset', { as: null, headers, body: `${new URLSearchParams(fields)}` });
  const refused = [
    [await submit({ token, new_password: 'short' }), 'It has 5 characters.'],
    [await submit({ token, new_password: NEW_PASSWORD, '<b>': '' }), '&lt;b> is not a known field.'],
    [await submit({ token: 'x', new_password: NEW_PASSWORD }), 'This link is invalid, expired or already used.'],
    [
      await fixture.call('GET', '/auth/password/reset?token=x', { as: null, headers: { accept: headers.accept } }),
      'link',
    ],
  ] as const;
  for (const [{ status, headers: sent, raw }, text] of refused) {
    expect([status, sent['content-type']]).toEqual([400, 'text/html; charset=utf-8']);
    expect(raw.toString()).toContain(text);
    expect(raw).toHaveLength(Number(sent['content-length']));
  }
  expect((await reset(token, 'short')).body.code).toBe('WEAK_PASSWORD');
  const page = await submit({ token, new_password: NEW_PASSWORD });
  expect([page.status, page.raw.toString()]).toEqual([200, expect.stringContaining('Your password is changed')]);
});

it('a reset sets a first password, and ends a login lockout', async () => {
  const { email, userId } = await register(fixture);
  await fixture.sql`update users set password_hash = null where id = ${userId}`;
  for (let guess = 0; guess < 10; guess += 1) await login(email, `guess number ${guess}`);
  expect((await login(email, NEW_PASSWORD)).status).toBe(429);
  expect((await reset(await tokenOf(userId))).status).toBe(200);
  expect((await login(email, NEW_PASSWORD)).status).toBe(200);
});

it('accepts a link that was signed before the master key was rotated', async () => {
  const { email, userId } = await register(fixture);
  expect((await reset(await tokenOf(userId, Buffer.alloc(32, 3)))).body.code).toBe('INVALID_RESET_TOKEN');
  expect((await reset(await tokenOf(userId, PREVIOUS_SECRET))).status).toBe(200);
  expect((await login(email, NEW_PASSWORD)).status).toBe(200);
});
