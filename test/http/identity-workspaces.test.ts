import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unsubscribeToken } from '../../http/unsubscribe-token.ts';
import { removeMember } from '../../storage/queries/memberships.ts';
import { verifyNumber } from '../../storage/queries/number-claims.ts';
import { untilTruthy } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { callWith, type Person, register, sessionOf } from './identity-fixture.ts';
import { seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({
    rateLimits: {
      anonymousPerMinute: 100_000,
      logins: { accountsPerNetwork: 500 },
      plans: { free: { perMinute: 100_000, perDay: 100_000 } },
    },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

describe('workspaces', () => {
  it('list each role, and the balance for owners alone', async () => {
    const { workspace } = await seedWorkspace(fixture.sql, { balanceNano: 12_500_000_000n, name: 'Rich' });
    const viewer = await fixture.addMemberWith('viewer', workspace.id);
    const token = await sessionOf(fixture, viewer);
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 60_000);
    await callWith(fixture, token, ['POST', '/workspaces', { name: 'Own' }]);
    fixture.now.current = before;
    const { body } = await callWith(fixture, token, ['GET', '/workspaces']);
    const rows = body.data.map(({ created_at: _, id: __, ...row }: Record<string, unknown>) => row);
    expect(rows).toEqual([
      { name: 'Rich', role: 'viewer', plan: 'enterprise', is_owner: false },
      { name: 'Own', role: 'owner', plan: 'free', is_owner: true, balance: 0 },
    ]);
    const second = await callWith(fixture, token, ['GET', '/workspaces?page=2&limit=1']);
    expect(second.body).toMatchObject({
      data: [{ name: 'Own' }],
      pagination: { page: 2, limit: 1, total: 2, pages: 2 },
    });
  });

  it.each(['', ' ', '\0', 'a\0b'])('reject the name %j', async (name) => {
    const token = await sessionOf(fixture, fixture.owner);
    const answer = await callWith(fixture, token, ['POST', '/workspaces', { name }]);
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.message).toContain('name');
  });

  it('stay hidden from a key except its own, and cannot be created by a key', async () => {
    const owner = await fixture.addWorkspace();
    await callWith(fixture, await sessionOf(fixture, owner), ['POST', '/workspaces', { name: 'Second' }]);
    const { body } = await fixture.call('GET', '/workspaces', { as: owner });
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([owner.workspaceId]);
    expect((await fixture.call('POST', '/workspaces', { as: owner, body: { name: 'Third' } })).status).toBe(403);
  });

  it('count against the quota of the user who created them, not of the owners whom others add', async () => {
    await using limited = await createHttpFixture({
      registration: 'open',
      quotas: { workspacesPerUser: 1, trunksPerWorkspace: 1, numbersPerWorkspace: 1 },
    });
    const [stranger, invited] = [await register(limited), await limited.addMemberWith('developer')];
    const { body: user } = await limited.call('GET', '/user', { as: invited });
    const members = `/workspaces/${stranger.workspaceId}/members`;
    const owner = { email: user.data.email, role: 'owner' };
    expect((await callWith(limited, stranger.token, ['POST', members, owner])).status).toBe(201);
    const left = await callWith(limited, stranger.token, ['DELETE', `${members}/${stranger.userId}`]);
    expect(left.status).toBe(200);
    const token = await sessionOf(limited, invited);
    const create = () => callWith(limited, token, ['POST', '/workspaces', { name: 'Own' }]);
    expect((await create()).status).toBe(201);
    expect((await create()).body.code).toBe('QUOTA_EXCEEDED');
  });

  it('show their balance to a limited key only with a billing scope', async () => {
    const { token, workspaceId } = await register(fixture);
    const balanceSeenWith = async (scopes: string[]) => {
      const fields = { name: 'limited', scopes, workspace_id: workspaceId };
      const { body } = await callWith(fixture, token, ['POST', '/developer/api', fields]);
      return (await callWith(fixture, body.data.key, ['GET', '/workspaces'])).body.data[0].balance;
    };
    expect(await balanceSeenWith(['calls:read'])).toBeUndefined();
    expect(await balanceSeenWith(['calls:read', 'billing:manage'])).toBe(0);
    expect(await balanceSeenWith([])).toBe(0);
  });
});

describe('workspace members', () => {
  let owner: Person;
  let url: string;
  beforeAll(async () => {
    owner = await register(fixture);
    url = `/workspaces/${owner.workspaceId}/members`;
  });

  const add = async (role: string, by = owner) => {
    const person = await register(fixture);
    const answer = await callWith(fixture, by.token, ['POST', url, { email: person.email.toUpperCase(), role }]);
    return { ...person, answer };
  };
  const patch = (by: Person, userId: number | string, role: string) =>
    callWith(fixture, by.token, ['PATCH', `${url}/${userId}`, { role }]);
  const remove = (by: Person, userId: number | string) => callWith(fixture, by.token, ['DELETE', `${url}/${userId}`]);

  it('join by e-mail address, and can be listed, changed and removed', async () => {
    const grace = await add('viewer');
    expect(grace.answer.status).toBe(201);
    expect(grace.answer.body.data).toMatchObject({ user_id: grace.userId, email: grace.email, role: 'viewer' });
    const pool = `/dialer/pool?workspace_id=${owner.workspaceId}`;
    expect((await callWith(fixture, grace.token, ['GET', pool])).status).toBe(200);
    expect((await patch(owner, grace.userId, 'admin')).body.data.role).toBe('admin');
    const list = await callWith(fixture, grace.token, ['GET', url]);
    expect(list.body.data.members).toMatchObject([
      { user_id: owner.userId, role: 'owner' },
      { user_id: grace.userId, role: 'admin' },
    ]);
    expect((await remove(owner, grace.userId)).body.data).toEqual({ user_id: grace.userId, removed: true });
    expect((await callWith(fixture, grace.token, ['GET', pool])).body.code).toBe('WORKSPACE_NOT_FOUND');
    expect((await remove(owner, grace.userId)).body.code).toBe('MEMBER_NOT_FOUND');
  });

  it('need an account, and join once', async () => {
    const unknown = { email: 'stranger@example.com', role: 'viewer' };
    const answer = await callWith(fixture, owner.token, ['POST', url, unknown]);
    expect([answer.status, answer.body.code]).toEqual([404, 'USER_NOT_FOUND']);
    const { email } = await add('viewer');
    const again = await callWith(fixture, owner.token, ['POST', url, { email, role: 'admin' }]);
    expect([again.status, again.body.code]).toEqual([409, 'ALREADY_MEMBER']);
  });

  it('stay out of reach for other workspaces', async () => {
    const stranger = await register(fixture);
    expect((await callWith(fixture, stranger.token, ['GET', url])).body.code).toBe('WORKSPACE_NOT_FOUND');
    expect((await remove(owner, stranger.userId)).body.code).toBe('MEMBER_NOT_FOUND');
    for (const id of ['x', '99999999999', '-1', "1'--"]) {
      expect((await patch(owner, encodeURIComponent(id), 'viewer')).body.code).toBe('MEMBER_NOT_FOUND');
    }
  });

  it('with the admin role cannot create or change owners', async () => {
    const admin = await add('admin');
    const other = await add('viewer');
    expect((await patch(admin, admin.userId, 'owner')).body.code).toBe('FORBIDDEN');
    expect((await patch(admin, owner.userId, 'viewer')).body.code).toBe('FORBIDDEN');
    expect((await remove(admin, owner.userId)).body.code).toBe('FORBIDDEN');
    expect((await add('owner', { ...admin })).answer.body.code).toBe('FORBIDDEN');
    expect((await patch(admin, other.userId, 'developer')).status).toBe(200);
    expect((await remove(admin, other.userId)).status).toBe(200);
  });

  it('always include an owner', async () => {
    for (const answer of [await patch(owner, owner.userId, 'admin'), await remove(owner, owner.userId)]) {
      expect([answer.status, answer.body.code]).toEqual([409, 'LAST_OWNER']);
    }
    expect((await patch(owner, owner.userId, 'owner')).status).toBe(200);
  });

  it('include an owner even when two owners remove each other at the same time', async () => {
    const first = await register(fixture);
    const second = await register(fixture);
    const members = `/workspaces/${first.workspaceId}/members`;
    await callWith(fixture, first.token, ['POST', members, { email: second.email, role: 'owner' }]);
    const answers = await Promise.all([
      callWith(fixture, first.token, ['DELETE', `${members}/${second.userId}`]),
      callWith(fixture, second.token, ['DELETE', `${members}/${first.userId}`]),
    ]);
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses[0]).toBe(200);
    expect([404, 409]).toContain(statuses[1]);
    const owners = await fixture.sql<{ userId: number }[]>`
      select user_id from memberships where workspace_id = ${first.workspaceId} and role = 'owner'`;
    expect(owners).toHaveLength(1);
    const [workspace] = await fixture.sql`select owner_user_id from workspaces where id = ${first.workspaceId}`;
    expect(workspace?.ownerUserId).toBe(owners[0]?.userId);
  });

  it('lose their keys on removal, even if they rejoin', async () => {
    const dev = await add('developer');
    const made = await callWith(fixture, dev.token, [
      'POST',
      '/developer/api',
      { name: 'mine', workspace_id: owner.workspaceId },
    ]);
    const as = { key: made.body.data.key } as Member;
    expect((await fixture.call('GET', '/dialer/pool', { as })).status).toBe(200);
    await remove(owner, dev.userId);
    expect((await fixture.call('GET', '/dialer/pool', { as })).status).toBe(401);
    await callWith(fixture, owner.token, ['POST', url, { email: dev.email, role: 'developer' }]);
    expect((await fixture.call('GET', '/dialer/pool', { as })).status).toBe(401);
  });
});

describe('API keys', () => {
  const inWorkspace = ({ workspaceId }: Person | Member, path = '') =>
    `/developer/api${path}?workspace_id=${workspaceId}`;

  it('appear once in full, then by prefix and last four characters; the database stores a hash', async () => {
    const owner = await register(fixture);
    const fields = { name: 'CRM', scopes: ['calls:read', 'calls:read'], expires_at: '2027-01-01T00:00:00Z' };
    const made = await callWith(fixture, owner.token, ['POST', inWorkspace(owner), fields]);
    expect(made.status).toBe(201);
    const { key, ...shown } = made.body.data;
    expect(key).toMatch(/^sk_[\w-]{32}$/);
    expect(shown).toEqual({
      id: expect.any(Number),
      name: 'CRM',
      prefix: key.slice(0, 7),
      last4: key.slice(-4),
      scopes: ['calls:read'],
      created_at: fixture.now.current.toISOString(),
      last_used_at: null,
      expires_at: '2027-01-01T00:00:00.000Z',
      created_by_user_id: owner.userId,
    });
    const list = await callWith(fixture, owner.token, ['GET', inWorkspace(owner)]);
    expect(list.body.data).toEqual({ keys: [shown], pagination: { page: 1, limit: 20, total: 1, pages: 1 } });
    expect(list.raw.toString()).not.toContain(key);
    const rows = await fixture.sql`select k::text as text from api_keys k where id = ${shown.id}`;
    expect(rows[0]?.text).not.toContain(key.slice(7, -4));
  });

  it.each([
    [{}, 'name'],
    [{ name: ' ' }, 'name'],
    [{ name: 'a\0b' }, 'name'],
    [{ name: 'k', scopes: ['everything'] }, 'scopes'],
    [{ name: 'k', expires_at: '2020-01-01' }, 'expires_at'],
    [{ name: 'k', expires_at: 'tomorrow' }, 'expires_at'],
  ])('reject %j', async (fields, path) => {
    const token = await sessionOf(fixture, fixture.owner);
    const answer = await callWith(fixture, token, ['POST', inWorkspace(fixture.owner), fields]);
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.message).toContain(path);
  });

  it('exclude a user who was removed while the request ran', async () => {
    const developer = await fixture.addMemberWith('developer');
    const token = await sessionOf(fixture, developer);
    const { workspaceId, userId } = developer;
    const removed = fixture.sql.begin(async (tx) => {
      await removeMember(tx, { workspaceId, userId, actorRole: 'owner', now: fixture.now.current });
      const made = callWith(fixture, token, ['POST', inWorkspace(developer), { name: 'late' }]);
      let hasAnswer = false;
      void made.finally(() => {
        hasAnswer = true;
      });
      // Commits the removal once the request waits for its lock, or has finished.
      await untilTruthy(async () => hasAnswer || (await lockWaits(fixture.sql)) > 0);
      return { made };
    });
    const answer = await (await removed).made;
    expect([answer.status, answer.body.code]).toEqual([404, 'WORKSPACE_NOT_FOUND']);
    const live = await fixture.sql`select 1 from api_keys where created_by_user_id = ${userId} and revoked_at is null`;
    expect(live).toHaveLength(0);
  });

  it('stop working when deleted by their user or an admin', async () => {
    const developer = await fixture.addMemberWith('developer');
    const other = await fixture.addMemberWith('developer');
    const admin = await fixture.addMemberWith('admin');
    const stranger = await fixture.addWorkspace();
    const list = async (as: Member) => (await fixture.call('GET', '/developer/api?limit=100', { as })).body.data.keys;
    expect((await list(developer)).map(({ id }: { id: number }) => id)).toEqual([developer.keyId]);
    expect((await list(admin)).map(({ id }: { id: number }) => id)).toContain(developer.keyId);
    const remove = (as: Member, id: unknown = developer.keyId) =>
      fixture.call('DELETE', `/developer/api/${id}`, { as });
    for (const as of [other, stranger]) expect((await remove(as)).body.code).toBe('KEY_NOT_FOUND');
    for (const id of ['x', '99999999999', '-1']) expect((await remove(admin, id)).body.code).toBe('KEY_NOT_FOUND');
    expect((await remove(admin)).body.data).toEqual({ id: developer.keyId, deleted: true });
    expect((await fixture.call('GET', '/dialer/pool', { as: developer })).status).toBe(401);
    expect((await remove(admin)).body.code).toBe('KEY_NOT_FOUND');
    expect((await remove(other, other.keyId)).status).toBe(200);
  });

  it('follow the current role of their user', async () => {
    const person = await fixture.addMemberWith('admin');
    expect((await fixture.call('GET', '/dialer/trunks', { as: person })).status).toBe(200);
    const url = `/workspaces/${fixture.owner.workspaceId}/members/${person.userId}`;
    expect((await fixture.call('PATCH', url, { body: { role: 'viewer' } })).status).toBe(200);
    expect((await fixture.call('GET', '/dialer/trunks', { as: person })).status).toBe(403);
  });
});

describe('a request whose body comes late', () => {
  const BODY = JSON.stringify({ url: 'https://hooks.example.com/', events: ['tts.completed'] });
  let origin: string;
  beforeAll(async () => {
    origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  });

  /** Sends the body two seconds after the headers, by the clock of the server. Resolves to the status. */
  async function createWebhook(
    { token, userId, workspaceId }: Pick<Person, 'token' | 'userId' | 'workspaceId'>,
    meanwhile: () => Promise<unknown>,
  ): Promise<number | undefined> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = request(`${origin}/webhooks?workspace_id=${workspaceId}`, { method: 'POST', headers });
    const answered = once(sent, 'response');
    sent.write(BODY.slice(0, 1));
    await untilTruthy(() => hasUsedCredentials(userId), 'the server has checked the credentials');
    await meanwhile();
    fixture.now.current = new Date(fixture.now.current.getTime() + 2_000);
    sent.end(BODY.slice(1));
    const [response] = (await answered) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  }

  async function hasUsedCredentials(userId: number): Promise<boolean> {
    const used = await fixture.sql`
      select 1 from api_keys where created_by_user_id = ${userId} and last_used_at is not null
      union select 1 from sessions where user_id = ${userId} and last_used_at is not null`;
    return used.length > 0;
  }

  const refusals: [string, number, (person: Member) => Promise<unknown>][] = [
    ['whose key was deleted meanwhile', 401, ({ keyId }) => fixture.call('DELETE', `/developer/api/${keyId}`)],
    [
      'whose user was demoted meanwhile',
      403,
      ({ workspaceId, userId }) =>
        fixture.call('PATCH', `/workspaces/${workspaceId}/members/${userId}`, { body: { role: 'viewer' } }),
    ],
    [
      'whose user was removed meanwhile',
      401,
      ({ workspaceId, userId }) => fixture.call('DELETE', `/workspaces/${workspaceId}/members/${userId}`),
    ],
  ];

  it.each(refusals)('fails for a key %s', async (_, status, revoke) => {
    const person = await fixture.addMemberWith('admin');
    expect(await createWebhook({ ...person, token: person.key }, () => revoke(person))).toBe(status);
  });

  it('fails for a session that ended meanwhile', async () => {
    const person = await register(fixture);
    expect(await createWebhook(person, () => callWith(fixture, person.token, ['POST', '/auth/logout']))).toBe(401);
  });

  it('succeeds while the credentials are valid', async () => {
    const person = await fixture.addMemberWith('admin');
    expect(await createWebhook({ ...person, token: person.key }, async () => {})).toBe(201);
  });

  it('needs one check of its credentials if only the database is slow', async () => {
    let checks = 0;
    const slow = new Proxy(fixture.sql, {
      apply(query, self, parts) {
        if (String(parts[0]).includes('k.key_hash =')) {
          checks += 1;
          fixture.now.current = new Date(fixture.now.current.getTime() + 2_000);
        }
        return Reflect.apply(query, self, parts);
      },
    });
    await using server = await createHttpFixture({ sql: slow, now: () => fixture.now.current });
    expect((await server.call('GET', '/webhooks', { as: await fixture.addWorkspace() })).status).toBe(200);
    expect(checks).toBe(1);
  });
});

describe('open event stream', () => {
  let streaming: HttpFixture;
  let workspaceId: string;
  let origin: string;
  beforeAll(async () => {
    // A long heartbeat: its check of the credentials does not end the stream here.
    streaming = await createHttpFixture({ heartbeatMs: 600_000 });
    workspaceId = (await seedWorkspace(streaming.sql)).workspace.id;
    await seedTrunk(streaming.sql, { workspaceId });
    origin = await streaming.app.listen({ host: '127.0.0.1', port: 0 });
  });
  afterAll(() => streaming[Symbol.asyncDispose]());

  async function open(member: Member, credential: string) {
    const { callId } = await seedCall(streaming, { by: member });
    const url = `${origin}/dialer/click2call/${callId}/stream?workspace_id=${workspaceId}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${credential}` } });
    expect(response.status).toBe(200);
    const ended = response.text();
    await untilTruthy(() => streaming.dialer.watcherCount(callId) === 1);
    return { ended, watchers: () => streaming.dialer.watcherCount(callId) };
  }

  it('ends at once when its own key is deleted', async () => {
    const admin = await streaming.addMemberWith('admin', workspaceId);
    const member = await streaming.addMemberWith('member', workspaceId);
    const kept = await open(admin, admin.key);
    const stream = await open(member, member.key);
    await streaming.call('DELETE', `/developer/api/${member.keyId}`, { as: admin });
    expect(await stream.ended).toContain('retry: ');
    expect([stream.watchers(), kept.watchers()]).toEqual([0, 1]);
  });

  it('ends at once when its user logs out', async () => {
    const member = await streaming.addMemberWith('member', workspaceId);
    const token = await sessionOf(streaming, member);
    const stream = await open(member, token);
    await callWith(streaming, token, ['POST', '/auth/logout']);
    expect(await stream.ended).toContain('retry: ');
  });

  it('ends at once when its user leaves the workspace', async () => {
    const owner = await streaming.addMemberWith('owner', workspaceId);
    const member = await streaming.addMemberWith('member', workspaceId);
    const byKey = await open(member, member.key);
    const bySession = await open(member, await sessionOf(streaming, member));
    await streaming.call('DELETE', `/workspaces/${workspaceId}/members/${member.userId}`, { as: owner });
    expect(await byKey.ended).toContain('retry: ');
    expect(await bySession.ended).toContain('retry: ');
  });

  it('ends at once when its user gets a role that may access other transcripts', async () => {
    const owner = await streaming.addMemberWith('owner', workspaceId);
    const admin = await streaming.addMemberWith('admin', workspaceId);
    const url = `/workspaces/${workspaceId}/members/${admin.userId}`;
    const byKey = await open(admin, admin.key);
    const bySession = await open(admin, await sessionOf(streaming, admin));
    await streaming.call('PATCH', url, { as: owner, body: { role: 'developer' } });
    expect(await byKey.ended).toContain('retry: ');
    expect(await bySession.ended).toContain('retry: ');
    const kept = await open(admin, admin.key);
    await streaming.call('PATCH', url, { as: owner, body: { role: 'viewer' } });
    expect(kept.watchers()).toBe(1);
    await streaming.call('PATCH', url, { as: owner, body: { role: 'admin' } });
    expect(await kept.ended).toContain('retry: ');
  });

  it('ends when its key expires', async () => {
    const member = await streaming.addMemberWith('member', workspaceId);
    await streaming.sql`
      update api_keys set expires_at = ${new Date(streaming.now.current.getTime() + 300)} where id = ${member.keyId}`;
    const stream = await open(member, member.key);
    expect(await stream.ended).toContain('retry: ');
  });
});

describe('audit log', () => {
  it('lists actor, action and target, newest first, for owners and admins', async () => {
    const owner = await register(fixture);
    const named = { workspace_id: owner.workspaceId };
    const made = await callWith(fixture, owner.token, ['POST', '/developer/api', { name: 'CRM', ...named }]);
    const { id: keyId, key, last4 } = made.body.data;
    const as = { key } as Member;
    const trunk = {
      name: 'Carrier',
      sip_uri: 'sip:carrier.example',
      password: 'a-secret-password',
      numbers: ['+911140000077'],
    };
    const { body } = await fixture.call('POST', '/dialer/trunks', { as, body: trunk });
    const trunkId = body.data.id;
    await verifyNumber(fixture.sql, { e164: '+911140000077', trunkId, by: 'operator', now: fixture.now.current });
    await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as, body: { password: 'another-password' } });
    await fixture.call('POST', '/dialer/numbers', { as, body: { e164: '+911140000077' } });
    await fixture.call('PUT', '/dialer/caller-id', { as, body: { caller_id: '+911140000077' } });
    await fixture.call('DELETE', '/dialer/numbers/%2B911140000077', { as });
    await fixture.call('DELETE', `/dialer/trunks/${trunkId}`, { as });
    await fixture.call('DELETE', `/dialer/trunks/${trunkId}`, { as });
    await callWith(fixture, owner.token, ['DELETE', `/developer/api/${keyId}?workspace_id=${owner.workspaceId}`]);

    const list = await callWith(fixture, owner.token, ['GET', `/audit?workspace_id=${owner.workspaceId}`]);
    const rows = list.body.data.entries.map((entry: { action: string; target: { id: string }; actor: object }) => [
      entry.action,
      entry.target.id,
      (entry.actor as { api_key_id: number | null }).api_key_id,
    ]);
    expect(rows).toEqual([
      ['api_key.revoked', String(keyId), null],
      ['trunk.deleted', trunkId, keyId],
      ['number.released', '+911140000077', keyId],
      ['caller_id.changed', trunkId, keyId],
      ['number.rented', '+911140000077', keyId],
      ['trunk.updated', trunkId, keyId],
      ['trunk.created', trunkId, keyId],
      ['api_key.created', String(keyId), null],
      ['workspace.created', owner.workspaceId, null],
    ]);
    const created = list.body.data.entries.at(-2);
    expect(created).toMatchObject({
      actor: { user_id: owner.userId },
      details: { name: 'CRM', last4 },
      request_id: made.headers['x-request-id'],
    });
    for (const hidden of [key, 'a-secret', 'another-password']) {
      expect(JSON.stringify(list.body.data.entries.map(({ details }: { details: unknown }) => details))).not.toContain(
        hidden,
      );
    }
    const filtered = await callWith(fixture, owner.token, [
      'GET',
      `/audit?workspace_id=${owner.workspaceId}&action=trunk.created&from=2026-01-01&to=2026-02-01&limit=1`,
    ]);
    expect(filtered.body.data.pagination.total).toBe(1);
  });

  it('cannot be changed', async () => {
    await register(fixture);
    await expect(fixture.sql`update audit_log set action = 'x'`).rejects.toThrow('append-only');
    await expect(fixture.sql`delete from audit_log`).rejects.toThrow('append-only');
  });
});

describe('onboarding', () => {
  it('saves the choices, with time and source of the consent set by the server', async () => {
    const { token, userId } = await register(fixture);
    const body = {
      default_voice_id: 'voice-1',
      marketing_consent: true,
      consent_timestamp: '1999-01-01T00:00:00Z',
      consent_source: 'forged',
    };
    const answer = await callWith(fixture, token, ['POST', '/user/onboarding', body]);
    const now = fixture.now.current.toISOString();
    expect(answer.body.data).toEqual({
      user_id: userId,
      onboarded_at: now,
      default_voice_id: 'voice-1',
      marketing_consent: true,
      consent_timestamp: now,
      consent_source: 'onboarding',
      unsubscribe_url: expect.stringMatching(/^http:\/\/voice\.test\/unsubscribe\?token=/),
    });
    const again = await callWith(fixture, token, ['POST', '/user/onboarding', {}]);
    expect(again.body.data).toEqual(answer.body.data);
  });

  it('succeeds even when saving the consent fails', async () => {
    await using broken = await createHttpFixture();
    const { token } = await register(broken);
    await broken.sql.unsafe(`
      create function refuse_consent() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
      create trigger refuse_consent before update of marketing_consent on users
        for each row execute function refuse_consent();`);
    const body = { default_voice_id: 'v', marketing_consent: true };
    const answer = await callWith(broken, token, ['POST', '/user/onboarding', body]);
    expect(answer.status).toBe(200);
    expect(answer.body.data).toMatchObject({
      default_voice_id: 'v',
      marketing_consent: false,
      consent_timestamp: null,
    });
    expect(broken.logLines.join('')).toContain('saving marketing consent failed');
  });
});

describe('unsubscribing', () => {
  const consentOf = async (userId: number) => {
    const [row] = await fixture.sql`
      select marketing_consent, consent_timestamp, consent_source from users where id = ${userId}`;
    return row;
  };

  it('asks on GET, acts on POST, and can be repeated', async () => {
    const { token, userId } = await register(fixture);
    const body = { marketing_consent: true };
    const { unsubscribe_url: link } = (await callWith(fixture, token, ['POST', '/user/onboarding', body])).body.data;
    const path = link.replace('http://voice.test', '');
    const page = await fixture.call('GET', path, { as: null });
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.raw.toString()).toContain('<form method="post">');
    expect(await consentOf(userId)).toMatchObject({ marketingConsent: true });

    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const oneClick = { as: null, body: 'List-Unsubscribe=One-Click', headers };
    expect((await fixture.call('POST', path, oneClick)).body).toEqual({ success: true, data: { unsubscribed: true } });
    const first = await consentOf(userId);
    expect(first).toMatchObject({ marketingConsent: false, consentSource: 'unsubscribe' });
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 60_000);
    const multipart = { 'content-type': 'multipart/form-data; boundary=x', accept: 'text/html' };
    const again = await fixture.call('POST', path, { as: null, body: '--x--', headers: multipart });
    fixture.now.current = before;
    expect(again.raw.toString()).toContain('You are unsubscribed');
    expect(await consentOf(userId)).toEqual(first);
  });

  it.each(['', 'x', '1.', `1.${'A'.repeat(43)}`, '%00'])('rejects the token %j', async (token) => {
    for (const method of ['GET', 'POST'] as const) {
      const answer = await fixture.call(method, `/unsubscribe?token=${token}`, { as: null });
      expect(answer.status).toBe(400);
    }
  });

  it('accepts a token of an old e-mail, signed before a rotation of the master key', async () => {
    const { userId } = await register(fixture);
    const unsubscribe = (secret: Buffer) =>
      fixture.call('POST', `/unsubscribe?token=${unsubscribeToken(userId, secret)}`, { as: null });
    expect((await unsubscribe(Buffer.alloc(32, 4))).body).toEqual({ success: true, data: { unsubscribed: true } });
    expect((await unsubscribe(Buffer.alloc(32, 3))).body.code).toBe('INVALID_UNSUBSCRIBE_TOKEN');
  });

  it('rejects a token made for another user', async () => {
    const { userId } = await register(fixture);
    const token = unsubscribeToken(userId, Buffer.alloc(32, 5)).replace(`${userId}.`, `${userId + 1}.`);
    const answer = await fixture.call('POST', `/unsubscribe?token=${token}`, { as: null });
    expect(answer.body.code).toBe('INVALID_UNSUBSCRIBE_TOKEN');
  });
});
