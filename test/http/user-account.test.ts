import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLoginLink, LOGIN_LINK_MS } from '../../storage/queries/login-links.ts';
import { eventually } from '../eventually.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { callWith, PASSWORD, type Person, register, sessionOf } from './identity-fixture.ts';

const NEW_PASSWORD = 'seven lanterns at the harbour';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({
    hasLanguageModel: true,
    rateLimits: { anonymousPerMinute: 100_000, logins: { accountsPerNetwork: 500, failuresPerNetwork: 500 } },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function logIn({ email }: Person, { password = PASSWORD, ...headers }: Record<string, string> = {}) {
  const { status, body } = await fixture.call('POST', '/auth/login', { as: null, body: { email, password }, headers });
  return status === 200 ? (body.data.token as string) : status;
}

describe('GET /user', () => {
  it('returns the user, their workspaces, the session and server features', async () => {
    const ada = await register(fixture, { name: 'Ada', workspace_name: 'Engines' });
    const { status, body } = await callWith(fixture, ada.token, ['GET', '/user']);
    const [session] = await fixture.sql<{ id: string; expiresAt: Date }[]>`
      select id, expires_at from sessions where user_id = ${ada.userId}`;
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect([status, body.data]).toEqual([
      200,
      {
        ...{ id: ada.userId, email: ada.email, name: 'Ada', has_password: true },
        workspaces: [{ id: ada.workspaceId, name: 'Engines', plan: 'free', role: 'owner' }],
        session: { id: session!.id, expires_at: session!.expiresAt.toISOString() },
        server: { version, registration: 'open', features: { llm: true, stripe: false, webrtc: true } },
      },
    ]);
  });

  it('returns to an API key only its workspace and no session', async () => {
    const member = await fixture.addMemberWith('viewer');
    const elsewhere = await fixture.addWorkspace();
    await fixture.sql`
      insert into memberships (workspace_id, user_id, role, created_at)
      values (${elsewhere.workspaceId}, ${member.userId}, 'admin', now())`;
    const { body } = await fixture.call('GET', '/user', { as: member });
    expect(body.data).toMatchObject({ id: member.userId, has_password: false, session: null });
    expect(body.data.workspaces.map(({ id, role }: { id: string; role: string }) => [id, role])).toEqual([
      [member.workspaceId, 'viewer'],
    ]);
    const { body: whole } = await callWith(fixture, await sessionOf(fixture, member), ['GET', '/user']);
    expect(whole.data.workspaces).toHaveLength(2);
  });

  it('requires credentials', async () => {
    expect((await fixture.call('GET', '/user', { as: null })).status).toBe(401);
  });
});

describe('PUT /user/password', () => {
  const change = (token: string, body: object) => callWith(fixture, token, ['PUT', '/user/password', body]);

  it('replaces the password, and ends other sessions and login links', async () => {
    const ada = await register(fixture);
    const other = (await logIn(ada)) as string;
    const { token: link } = await createLoginLink(fixture.sql, {
      ...{ userId: ada.userId, lifetimeMs: LOGIN_LINK_MS, now: fixture.now.current },
    });
    const { status, body } = await change(ada.token, { current_password: PASSWORD, new_password: NEW_PASSWORD });
    expect([status, body.data]).toEqual([200, { password_changed: true, sessions_ended: 1 }]);
    expect((await callWith(fixture, ada.token, ['GET', '/user'])).status).toBe(200);
    expect((await callWith(fixture, other, ['GET', '/user'])).status).toBe(401);
    expect(await logIn(ada)).toBe(401);
    expect(await logIn(ada, { password: NEW_PASSWORD })).toMatch(/^eyJ/);
    const used = await fixture.call('POST', '/auth/login-link', { as: null, body: { token: link } });
    expect(used.status).toBe(401);
    const audited = await fixture.sql`
      select workspace_id from audit_log
      where action = 'user.password_changed' and actor_user_id = ${ada.userId}`;
    expect(audited).toEqual([{ workspaceId: ada.workspaceId }]);
    for (const secret of [PASSWORD, NEW_PASSWORD]) expect(fixture.logLines.join('')).not.toContain(secret);
  });

  it('keeps the other sessions on request', async () => {
    const ada = await register(fixture);
    const other = (await logIn(ada)) as string;
    const body = { current_password: PASSWORD, new_password: NEW_PASSWORD, keep_sessions: true };
    expect((await change(ada.token, body)).body.data.sessions_ended).toBe(0);
    expect((await callWith(fixture, other, ['GET', '/user'])).status).toBe(200);
  });

  it('sets a first password without a current one', async () => {
    const member = await fixture.addMemberWith('member');
    const token = await sessionOf(fixture, member);
    expect((await change(token, { new_password: NEW_PASSWORD })).status).toBe(200);
    expect((await callWith(fixture, token, ['GET', '/user'])).body.data.has_password).toBe(true);
  });

  it('rejects a wrong or missing current password, a weak new one, and an API key', async () => {
    const ada = await register(fixture);
    const answers = [
      await change(ada.token, { current_password: 'wrong', new_password: NEW_PASSWORD }),
      await change(ada.token, { new_password: NEW_PASSWORD }),
      await change(ada.token, { current_password: PASSWORD, new_password: 'password12' }),
      await fixture.call('PUT', '/user/password', { body: { new_password: NEW_PASSWORD } }),
    ];
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [403, 'WRONG_PASSWORD'],
      [400, 'VALIDATION_FAILED'],
      [400, 'WEAK_PASSWORD'],
      [403, 'FORBIDDEN'],
    ]);
    expect(await logIn(ada)).toMatch(/^eyJ/);
  });

  it('lets one of two simultaneous changes succeed', async () => {
    const ada = await register(fixture);
    const answers = await Promise.all(
      ['one', 'two'].map((word) =>
        change(ada.token, { current_password: PASSWORD, new_password: `${NEW_PASSWORD} ${word}` }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403]);
  });

  it('limits guesses', async () => {
    await using strict = await createHttpFixture({ rateLimits: { logins: { failuresPerEmail: 1 } } });
    const { token } = await register(strict);
    const body = { current_password: 'wrong', new_password: NEW_PASSWORD };
    const guess = async () => (await callWith(strict, token, ['PUT', '/user/password', body])).body.code;
    expect([await guess(), await guess()]).toEqual(['WRONG_PASSWORD', 'LOGIN_THROTTLED']);
  });
});

describe('GET /user/sessions', () => {
  it('lists the sessions of the user, newest first, with the client that logged in', async () => {
    const ada = await register(fixture);
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 1_000);
    const hostile = `<script>alert(1)</script>${'x'.repeat(400)}`;
    const second = (await logIn(ada, { 'user-agent': hostile })) as string;
    const list = () => callWith(fixture, second, ['GET', '/user/sessions']);
    await list();
    await eventually(async () => expect((await list()).body.data.sessions[0].last_used_at).not.toBeNull());
    const { sessions, pagination } = (await list()).body.data;
    fixture.now.current = before;
    expect(pagination.total).toBe(2);
    expect(sessions[0]).toMatchObject({
      created_at: new Date(before.getTime() + 1_000).toISOString(),
      last_used_at: new Date(before.getTime() + 1_000).toISOString(),
      user_agent: hostile.slice(0, 300),
      address: '127.0.0.1',
      current: true,
    });
    expect(sessions[1]).toMatchObject({ created_at: before.toISOString(), current: false });
  });

  it('omits ended sessions and those of other users', async () => {
    const ada = await register(fixture);
    const other = (await logIn(ada)) as string;
    await callWith(fixture, other, ['POST', '/auth/logout']);
    await register(fixture);
    const { sessions } = (await callWith(fixture, ada.token, ['GET', '/user/sessions'])).body.data;
    expect(sessions.map(({ current }: { current: boolean }) => current)).toEqual([true]);
    expect((await fixture.call('GET', '/user/sessions')).body.code).toBe('FORBIDDEN');
  });
});

describe('DELETE /user/sessions', () => {
  const idsOf = async (token: string) => {
    const { sessions } = (await callWith(fixture, token, ['GET', '/user/sessions'])).body.data;
    return sessions as { id: string; current: boolean }[];
  };
  const isActive = async (token: string) => (await callWith(fixture, token, ['GET', '/user'])).status === 200;

  it('ends one session', async () => {
    const ada = await register(fixture);
    const other = (await logIn(ada)) as string;
    const id = (await idsOf(ada.token)).find(({ current }) => !current)!.id;
    const end = () => callWith(fixture, ada.token, ['DELETE', `/user/sessions/${id}`]);
    expect((await end()).body.data).toEqual({ id, logged_out: true });
    expect([await isActive(ada.token), await isActive(other)]).toEqual([true, false]);
    expect((await end()).body.code).toBe('SESSION_NOT_FOUND');
  });

  it('keeps sessions of other users', async () => {
    const [ada, eve] = [await register(fixture), await register(fixture)];
    const [{ id } = { id: '' }] = await idsOf(ada.token);
    for (const named of [id, 'nothing', '00000000-0000-0000-0000-000000000000']) {
      const { status, body } = await callWith(fixture, eve.token, ['DELETE', `/user/sessions/${named}`]);
      expect([status, body.code]).toEqual([404, 'SESSION_NOT_FOUND']);
    }
    expect(await isActive(ada.token)).toBe(true);
  });

  it('ends all other sessions, and with current=true this one too', async () => {
    const ada = await register(fixture);
    const others = [(await logIn(ada)) as string, (await logIn(ada)) as string];
    const end = (query: string, token: string) => callWith(fixture, token, ['DELETE', `/user/sessions${query}`]);
    expect((await end('', ada.token)).body.data).toEqual({ sessions_ended: 2 });
    expect([await isActive(ada.token), ...(await Promise.all(others.map(isActive)))]).toEqual([true, false, false]);
    const last = (await logIn(ada)) as string;
    expect((await end('?current=true', last)).body.data).toEqual({ sessions_ended: 2 });
    expect([await isActive(ada.token), await isActive(last)]).toEqual([false, false]);
  });

  it('clears the cookie when it ends the current session', async () => {
    const ada = await register(fixture);
    const withCookie = (url: string) =>
      fixture.call('DELETE', url, {
        as: null,
        headers: { cookie: `tandem_session=${ada.token}`, 'sec-fetch-site': 'same-origin' },
      });
    expect((await withCookie('/user/sessions')).headers).not.toHaveProperty('set-cookie');
    expect((await withCookie('/user/sessions?current=true')).headers['set-cookie']).toContain('Max-Age=0');
  });
});
