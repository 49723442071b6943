import { createHash, randomBytes } from 'node:crypto';
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Access, applyPermission, PERMISSIONS, type Permission, SCOPES } from '../../http/permissions.ts';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import type { Role } from '../../storage/queries/workspaces.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';

const ROLES: readonly Role[] = ['owner', 'admin', 'developer', 'member', 'viewer'];

/** Written out here, so that a change of the code breaks the test. */
const LET_IN: Record<Access, readonly Role[]> = {
  public: ROLES,
  user: ROLES,
  member: ROLES,
  writer: ['owner', 'admin', 'developer', 'member'],
  admin: ['owner', 'admin'],
  owner: ['owner'],
};

let fixture: HttpFixture;
const members = new Map<Role, Member>();
beforeAll(async () => {
  fixture = await createHttpFixture({
    rateLimits: {
      anonymousPerMinute: 1_000_000,
      plans: { enterprise: { perMinute: 1e6, perDay: 1e6 } },
      logins: { failuresPerNetwork: 1_000_000, accountsPerNetwork: 1_000_000 },
    },
  });
  for (const role of ROLES) members.set(role, await fixture.addMemberWith(role));
});
afterAll(() => fixture[Symbol.asyncDispose]());

type Method = Parameters<HttpFixture['call']>[0];

/** Every row with a matching URL, whose ids do not exist, so that permitted requests change nothing. */
const ROWS = Object.entries(PERMISSIONS).map(([name, permission]) => {
  const [method, pattern] = name.split(' ') as [Method, string];
  return { name, method, pattern, permission };
});

function urlOf(pattern: string, { inQuery }: { inQuery: boolean }): string {
  const { workspaceId } = fixture.owner;
  const path = pattern
    .replace('/workspaces/:id', `/workspaces/${workspaceId}`)
    .replace(/:\w+/g, '999999999')
    .replace('*', 'nothing.wav');
  return inQuery ? `${path}?workspace_id=${workspaceId}` : path;
}

type Kind = 'api_key' | 'session' | 'nobody' | 'expired key' | 'key for something else';

async function call({ name, method, pattern }: (typeof ROWS)[number], credential: string | null, kind: Kind) {
  const url = urlOf(pattern, { inQuery: kind === 'session' });
  const headers: Record<string, string> = credential === null ? {} : { authorization: `Bearer ${credential}` };
  const body = method === 'GET' || method === 'DELETE' ? {} : { body: { nothing_of_the_kind: true } };
  const { status, body: answer } = await fixture.call(method, url, { as: null, headers, ...body });
  expect(status, `${name} must not fail`).not.toBe(500);
  return { status, code: answer?.code as string | undefined };
}

async function addKey({ workspaceId, userId }: Member, more: { scopes?: string[]; expiresAt?: Date }): Promise<string> {
  const key = `sk_${randomBytes(24).toString('base64url')}`;
  await createApiKey(fixture.sql, {
    workspaceId,
    createdByUserId: userId,
    name: 'limited',
    prefix: key.slice(0, 7),
    last4: key.slice(-4),
    keyHash: createHash('sha256').update(key).digest(),
    now: fixture.now.current,
    ...more,
  });
  return key;
}

describe('permission table', () => {
  it('contains exactly the operations of the OpenAPI document', async () => {
    const { body } = await fixture.call('GET', '/openapi.json', { as: null });
    const operations = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    );
    const rows = ROWS.map(({ name }) =>
      name.replace('/media/*', '/media/:key').replace('/v1/models/*', '/v1/models/:id'),
    );
    const documented = operations.filter((name) => !name.startsWith('HEAD '));
    expect(documented.length).toBeGreaterThan(40);
    expect(rows.toSorted()).toEqual(documented.toSorted());
  });

  it('names only assignable scopes, and uses each one', () => {
    const used = new Set(ROWS.flatMap(({ permission }) => permission.scope ?? []));
    expect([...used].toSorted()).toEqual([...SCOPES].toSorted());
  });

  it('fails the start for a route without a row or with a contradicting one', () => {
    const route = (url: string, config = {}) => ({ method: 'GET', url, config, handler: () => null }) as const;
    expect(() => applyPermission(route('/secrets'))).toThrow('GET /secrets');
    expect(() => applyPermission(route('/secrets', { access: 'public' }))).toThrow('GET /secrets');
    expect(() => applyPermission(route('/audit', { access: 'public' }))).toThrow('declares access public');
    expect(() => applyPermission(route('/audit', { access: 'admin' }))).not.toThrow();
    const app = Fastify();
    app.addHook('onRoute', applyPermission);
    expect(() => app.get('/secrets', async () => null)).toThrow('GET /secrets');
  });
});

it('HEAD requires the permission of GET', async () => {
  const limited = await addKey(members.get('owner')!, { scopes: ['calls:write'] });
  const headers = { authorization: `Bearer ${limited}` };
  for (const { method, pattern, permission } of ROWS) {
    if (method !== 'GET' || permission.scope === null) continue;
    const { status } = await fixture.call('HEAD', urlOf(pattern, { inQuery: false }), { as: null, headers });
    // 405: a call's event stream does not support HEAD.
    expect([403, 405], pattern).toContain(status);
  }
});

describe.each(ROWS)('$name', (row) => {
  const { access, credentials, scope }: Permission = row.permission;

  it('requires credentials unless public', async () => {
    const { status } = await call(row, null, 'nobody');
    if (access === 'public') expect(status).not.toBe(401);
    else expect(status).toBe(401);
  });

  it.each(ROLES)('admits or refuses a key of the role %s', async (role) => {
    const { status, code } = await call(row, members.get(role)!.key, 'api_key');
    const isLetIn = access === 'public' || (credentials === 'any' && LET_IN[access].includes(role));
    if (isLetIn) expect([status, code]).not.toContain(status === 401 ? 401 : 'FORBIDDEN');
    else expect([status, code]).toEqual([403, 'FORBIDDEN']);
  });

  it.each(ROLES)('admits or refuses a session of the role %s', async (role) => {
    const { status, code } = await call(row, await sessionOf(fixture, members.get(role)!), 'session');
    const isLetIn = LET_IN[access].includes(role);
    if (isLetIn) expect([status, code]).not.toContain(status === 401 ? 401 : 'FORBIDDEN');
    else expect([status, code]).toEqual([403, 'FORBIDDEN']);
  });

  it("refuses an owner's key with another scope, and an expired key", async () => {
    if (access === 'public') return;
    const expired = await addKey(members.get('owner')!, { expiresAt: fixture.now.current });
    expect((await call(row, expired, 'expired key')).status).toBe(401);
    const other = await addKey(members.get('owner')!, { scopes: SCOPES.filter((name) => name !== scope) });
    const { status, code } = await call(row, other, 'key for something else');
    if (scope !== null || credentials === 'session') expect([status, code]).toEqual([403, 'FORBIDDEN']);
    else expect(status).not.toBe(403);
    if (scope === null) return;
    const fitting = await addKey(members.get('owner')!, { scopes: [scope] });
    expect((await call(row, fitting, 'api_key')).code).not.toBe('FORBIDDEN');
  });

  it('finds no workspace for a session from another one', async () => {
    if (access === 'public' || access === 'user') return;
    const stranger = await fixture.addWorkspace();
    const { status, code } = await call(row, await sessionOf(fixture, stranger), 'session');
    expect([status, code]).toEqual([404, 'WORKSPACE_NOT_FOUND']);
  });
});
