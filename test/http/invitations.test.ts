import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../config.ts';
import { inTransaction } from '../../storage/database.ts';
import { acceptInvitation, createInvitation, requireInvitation } from '../../storage/queries/invitations.ts';
import { untilTruthy } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { callWith, PASSWORD, register, sessionOf } from './identity-fixture.ts';

const LIMITS = { anonymousPerMinute: 100_000, logins: { accountsPerNetwork: 500 } };

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({ registration: 'invite', rateLimits: LIMITS });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const newEmail = () => `${randomBytes(6).toString('hex')}@example.com`;

async function invite(fields: Record<string, unknown>, as: Member = fixture.owner) {
  return await fixture.call('POST', `/workspaces/${as.workspaceId}/invitations`, { as, body: fields });
}

async function signUp(email: string, invitation?: string) {
  const body = { email, password: PASSWORD, ...(invitation !== undefined && { invitation }) };
  return await fixture.call('POST', '/auth/register', { as: null, body });
}

/** A logged-in user with a workspace of their own. */
async function stranger() {
  const member = await fixture.addWorkspace();
  const [user] = await fixture.sql<{ email: string }[]>`select email from users where id = ${member.userId}`;
  return { ...member, email: user!.email, token: await sessionOf(fixture, member) };
}

const accept = (token: string, session: string) =>
  callWith(fixture, session, ['POST', '/invitations/accept', { token }]);

describe('registration', () => {
  it('fails on a closed server even with an invitation, and names the setting', async () => {
    await using closed = await createHttpFixture({ registration: 'closed' });
    const email = newEmail();
    const url = `/workspaces/${closed.owner.workspaceId}/invitations`;
    const invitation = await closed.call('POST', url, { body: { email, role: 'member' } });
    for (const extra of [{}, { invitation: invitation.body.data.token }]) {
      const body = { email, password: PASSWORD, ...extra };
      const { status, body: answer } = await closed.call('POST', '/auth/register', { as: null, body });
      expect([status, answer.code]).toEqual([403, 'REGISTRATION_CLOSED']);
      expect(answer.message).toContain('REGISTRATION=invite');
    }
    const [row] = await closed.sql<{ n: number }[]>`select count(*)::int as n from users where email = ${email}`;
    expect(row!.n).toBe(0);
  });

  it('defaults to closed', async () => {
    expect(loadConfig({}, [], '/nonexistent/.env').registration).toBe('closed');
  });

  it('requires an invitation in the mode `invite`', async () => {
    const { status, body } = await signUp(newEmail());
    expect([status, body.code]).toEqual([403, 'REGISTRATION_CLOSED']);
    expect(body.message).toContain('invitation');
  });

  it('creates a member and no workspace from an invitation to a workspace', async () => {
    const email = newEmail();
    const invitation = await invite({ email: email.toUpperCase(), role: 'developer' });
    expect(invitation.status).toBe(201);
    expect(invitation.body.data).toMatchObject({ email, role: 'developer', kind: 'member', status: 'pending' });
    const { status, body } = await signUp(email, invitation.body.data.token);
    expect(status).toBe(201);
    expect(body.data.workspace).toMatchObject({ id: fixture.owner.workspaceId, role: 'developer' });
    const mine = await callWith(fixture, body.data.token, ['GET', '/workspaces']);
    expect(mine.body.data).toMatchObject([{ id: fixture.owner.workspaceId, role: 'developer' }]);
  });

  it('creates a workspace from an invitation to open an account', async () => {
    const email = newEmail();
    const invitation = await invite({ email, kind: 'account' });
    expect(invitation.body.data).toMatchObject({ kind: 'account', role: null });
    const { status, body } = await signUp(email, invitation.body.data.token);
    expect(status).toBe(201);
    expect(body.data.workspace.role).toBe('owner');
    expect(body.data.workspace.id).not.toBe(fixture.owner.workspaceId);
  });

  it('uses an invitation once, even for simultaneous requests', async () => {
    const email = newEmail();
    const { token } = (await invite({ email, role: 'viewer' })).body.data;
    const answers = await Promise.all(Array.from({ length: 5 }, () => signUp(email, token)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 400, 400, 400, 400]);
    for (const { body } of answers.filter(({ status }) => status === 400)) expect(body.code).toBe('INVALID_INVITATION');
  });

  it('keeps an invitation that failed', async () => {
    const known = await stranger();
    const { token } = (await invite({ email: known.email, role: 'viewer' })).body.data;
    expect((await signUp(known.email, token)).body.code).toBe('EMAIL_TAKEN');
    expect((await accept(token, known.token)).body.data).toEqual({
      workspace_id: fixture.owner.workspaceId,
      role: 'viewer',
    });
  });
});

describe('invitation', () => {
  it('adds an existing user once, and appears in the audit log', async () => {
    const person = await stranger();
    const { token, id } = (await invite({ email: person.email, role: 'admin' })).body.data;
    expect((await accept(token, person.token)).status).toBe(200);
    expect((await accept(token, person.token)).body.code).toBe('INVALID_INVITATION');
    const { entries } = (await fixture.call('GET', '/audit?limit=5')).body.data;
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'invitation.accepted', target: { id }, actor: { user_id: person.userId } },
      { action: 'invitation.created', target: { id }, details: { role: 'admin' } },
    ]);
    expect((await invite({ email: person.email, role: 'viewer' })).body.code).toBe('ALREADY_MEMBER');
  });

  it('works only for its address, until it expires or is revoked or replaced', async () => {
    const person = await stranger();
    const other = await stranger();
    const make = async () => (await invite({ email: person.email, role: 'viewer', expires_in_hours: 1 })).body.data;
    const first = await make();
    expect((await accept(first.token, other.token)).body.code).toBe('INVALID_INVITATION');
    const second = await make();
    expect((await accept(first.token, person.token)).body.code).toBe('INVALID_INVITATION');
    const url = `/workspaces/${fixture.owner.workspaceId}/invitations`;
    expect((await fixture.call('DELETE', `${url}/${second.id}`)).body.data.status).toBe('revoked');
    expect((await fixture.call('DELETE', `${url}/${second.id}`)).body.code).toBe('INVITATION_NOT_FOUND');
    expect((await accept(second.token, person.token)).body.code).toBe('INVALID_INVITATION');
    const third = await make();
    const before = fixture.now.current;
    fixture.now.current = new Date(before.getTime() + 3_600_000);
    expect((await accept(third.token, person.token)).body.code).toBe('INVALID_INVITATION');
    const { invitations } = (await fixture.call('GET', url)).body.data;
    const status = (id: string) => invitations.find((each: { id: string }) => each.id === id).status;
    expect([first, second, third].map(({ id }) => status(id))).toEqual(['revoked', 'revoked', 'expired']);
    fixture.now.current = before;
    expect(JSON.stringify(invitations)).not.toContain(third.token);
    expect((await accept(third.token, person.token)).status).toBe(200);
  });

  it('gets replaced by another one that was requested at the same time', async () => {
    const email = newEmail();
    const { workspaceId } = fixture.owner;
    const now = fixture.now.current;
    const expiresAt = new Date(now.getTime() + 3_600_000);
    const invitation = { workspaceId, kind: 'member', role: 'viewer', email, invitedBy: null, expiresAt, now } as const;
    const other = await inTransaction(fixture.sql, async (tx) => {
      await createInvitation(tx, invitation);
      const inviting = invite({ email, role: 'viewer' });
      await Promise.race([inviting, untilTruthy(() => lockWaits(fixture.sql))]);
      return { inviting };
    });
    expect((await other.inviting).status).toBe(201);
    const { invitations } = (await fixture.call('GET', `/workspaces/${workspaceId}/invitations`)).body.data;
    const ours = invitations.filter((each: { email: string }) => each.email === email);
    expect(ours.map(({ status }: { status: string }) => status).sort()).toEqual(['pending', 'revoked']);
  });

  it('can be accepted while the same address is invited again', async () => {
    const { email, userId } = await stranger();
    const now = fixture.now.current;
    const { token } = (await invite({ email, role: 'viewer' })).body.data;
    const { inviting } = await inTransaction(fixture.sql, async (tx) => {
      const invitation = await requireInvitation(tx, { token, email, now });
      const again = invite({ email, role: 'viewer' });
      await Promise.race([again, untilTruthy(() => lockWaits(fixture.sql))]);
      await acceptInvitation(tx, { invitation, userId, requestId: 'accept-1', now });
      return { inviting: again };
    });
    expect((await inviting).body.code).toBe('ALREADY_MEMBER');
  });

  it('stops working when its creator loses the permission', async () => {
    const admin = await fixture.addMemberWith('admin');
    const person = await stranger();
    const { token } = (await invite({ email: person.email, role: 'developer' }, admin)).body.data;
    const url = `/workspaces/${fixture.owner.workspaceId}/members/${admin.userId}`;
    await fixture.call('PATCH', url, { body: { role: 'member' } });
    expect((await accept(token, person.token)).body.code).toBe('INVALID_INVITATION');
    await fixture.call('PATCH', url, { body: { role: 'admin' } });
    expect((await accept(token, person.token)).status).toBe(200);
  });

  it('requires an owner to invite one, and the first workspace to invite an account', async () => {
    const admin = await fixture.addMemberWith('admin');
    expect((await invite({ email: newEmail(), role: 'owner' }, admin)).body.code).toBe('FORBIDDEN');
    const elsewhere = await fixture.addWorkspace();
    const refused = await invite({ email: newEmail(), kind: 'account' }, elsewhere);
    expect([refused.status, refused.body.code]).toEqual([403, 'FORBIDDEN']);
    expect((await invite({ email: newEmail(), role: 'viewer' }, elsewhere)).status).toBe(201);
  });

  it('requires a role exactly when it is to a workspace', async () => {
    expect((await invite({ email: newEmail() })).body.details).toEqual([{ path: 'role', message: 'is required' }]);
    expect((await invite({ email: newEmail(), kind: 'account', role: 'viewer' })).body.code).toBe('VALIDATION_FAILED');
  });

  it('does nothing for a user who already owns an account', async () => {
    const person = await stranger();
    const { token } = (await invite({ email: person.email, kind: 'account' })).body.data;
    expect((await accept(token, person.token)).body.code).toBe('INVALID_INVITATION');
  });

  it('hides from other workspaces, which cannot revoke it', async () => {
    const { id } = (await invite({ email: newEmail(), role: 'viewer' })).body.data;
    const elsewhere = await fixture.addWorkspace();
    const url = `/workspaces/${elsewhere.workspaceId}/invitations`;
    expect((await fixture.call('GET', url, { as: elsewhere })).body.data.invitations).toEqual([]);
    expect((await fixture.call('DELETE', `${url}/${id}`, { as: elsewhere })).body.code).toBe('INVITATION_NOT_FOUND');
  });

  it('keeps its token out of the database and the log', async () => {
    const { token } = (await invite({ email: newEmail(), role: 'viewer' })).body.data;
    await fixture.call('GET', '/workspaces', { headers: { 'x-request-id': token } });
    const rows = await fixture.sql<{ text: string }[]>`select i::text as text from invitations i`;
    expect(rows.map(({ text }) => text).join()).not.toContain(token);
    expect(fixture.logLines.join('')).not.toContain(token);
  });
});

it('an open server registers anyone, and accepts invitations', async () => {
  await using open = await createHttpFixture({ registration: 'open', rateLimits: LIMITS });
  const person = await register(open);
  const email = newEmail();
  const url = `/workspaces/${person.workspaceId}/invitations`;
  const { body } = await callWith(open, person.token, ['POST', url, { email, role: 'member' }]);
  const joined = await register(open, { email, invitation: body.data.token });
  expect(joined.workspaceId).toBe(person.workspaceId);
});
