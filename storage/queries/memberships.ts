import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { revokeApiKeysOf } from './api-keys.ts';
import { isUuid } from './identifiers.ts';
import { leaveMemoryTeams } from './memory-collections.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { addMember, findUserByEmail, lockWorkspace, type Plan, type Role } from './workspaces.ts';

export interface MemberRow {
  userId: number;
  email: string;
  name: string;
  role: Role;
  createdAt: Date;
}

/** Returns a user's membership with the workspace's plan; null if there is none or the id is invalid. */
export async function findMembership(
  sql: SqlOrTx,
  { workspaceId, userId }: { workspaceId: string; userId: number },
): Promise<{ workspaceId: string; plan: Plan; role: Role } | null> {
  if (!isUuid(workspaceId)) return null;
  const [row] = await sql<{ workspaceId: string; plan: Plan; role: Role }[]>`
    select m.workspace_id, w.plan, m.role from memberships m join workspaces w on w.id = m.workspace_id
    where m.workspace_id = ${workspaceId} and m.user_id = ${userId}`;
  return row ?? null;
}

export interface MembershipOfUser {
  id: string;
  name: string;
  plan: Plan;
  role: Role;
  createdAt: Date;
  /** Available balance. */
  balanceNano: bigint;
}

/** Lists a user's workspaces, oldest first; optionally just one. */
export async function listMemberships(
  sql: SqlOrTx,
  { userId, workspaceId }: { userId: number; workspaceId?: string | undefined },
  page: Page,
): Promise<PageOf<MembershipOfUser>> {
  const matching = sql`
    m.user_id = ${userId} ${workspaceId === undefined ? sql`` : sql`and m.workspace_id = ${workspaceId}`}`;
  const rows = await sql<MembershipOfUser[]>`
    select w.id, w.name, w.plan, m.role, w.created_at, a.balance_nano
    from memberships m join workspaces w on w.id = m.workspace_id
    join accounts a on a.workspace_id = w.id and a.kind = 'wallet'
    where ${matching} order by w.created_at, w.id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from memberships m where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

export async function listMembers(
  sql: SqlOrTx,
  { workspaceId }: { workspaceId: string },
  page: Page,
): Promise<PageOf<MemberRow>> {
  const rows = await sql<MemberRow[]>`
    ${selectMembers(sql, workspaceId)} order by m.created_at, m.user_id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from memberships where workspace_id = ${workspaceId}`;
  return { rows, total: count?.total ?? 0 };
}

export interface Colleague {
  userId: number;
  /** The e-mail address if there is no name. */
  name: string;
}

/** Lists the members who can have a phone in the browser, except this user, by name. */
export async function listColleagues(
  sql: SqlOrTx,
  { workspaceId, userId }: { workspaceId: string; userId: number },
  page: Page,
): Promise<PageOf<Colleague>> {
  const matching = sql`m.workspace_id = ${workspaceId} and m.role <> 'viewer' and m.user_id <> ${userId}`;
  const name = sql`coalesce(nullif(u.name, ''), u.email)`;
  const rows = await sql<Colleague[]>`
    select m.user_id, ${name} as name from memberships m join users u on u.id = m.user_id
    where ${matching} order by lower(${name}), m.user_id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from memberships m where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

/** A change to a member by a user with `actorRole`. */
export interface MemberChange {
  workspaceId: string;
  userId: number;
  /** Only owners add, change and remove owners. */
  actorRole: Role;
  now: Date;
}

/** @throws TandemError USER_NOT_FOUND, ALREADY_MEMBER, FORBIDDEN */
export async function inviteMember(
  sql: SqlOrTx,
  { email, role, ...change }: Omit<MemberChange, 'userId'> & { email: string; role: Role },
): Promise<MemberRow> {
  return await inTransaction(sql, async (tx) => {
    await lockWorkspace(tx, change.workspaceId);
    requireRank(change.actorRole, role);
    const user = await findUserByEmail(tx, email);
    if (user === null) {
      throw new TandemError(
        'USER_NOT_FOUND',
        'No account has this e-mail address. Invite the person with POST /workspaces/{id}/invitations.',
      );
    }
    return await joinWorkspace(tx, { ...change, userId: user.id, role });
  });
}

/** @throws TandemError ALREADY_MEMBER */
export async function joinWorkspace(
  tx: Tx,
  joining: { workspaceId: string; userId: number; role: Role; now: Date },
): Promise<MemberRow> {
  await lockWorkspace(tx, joining.workspaceId);
  if ((await findMember(tx, joining)) !== null) {
    throw new TandemError('ALREADY_MEMBER', 'The user is already a member of the workspace. Change the role instead.');
  }
  await addMember(tx, joining);
  return (await findMember(tx, joining))!;
}

/** @throws TandemError MEMBER_NOT_FOUND, LAST_OWNER, FORBIDDEN */
export async function changeMemberRole(
  sql: SqlOrTx,
  { role, ...change }: MemberChange & { role: Role },
): Promise<{ member: MemberRow; previousRole: Role }> {
  return await inTransaction(sql, async (tx) => {
    const member = await lockMember(tx, change);
    requireRank(change.actorRole, role);
    if (role !== 'owner') await requireAnotherOwner(tx, { ...change, member });
    await addMember(tx, { ...change, role });
    await keepOwnerOfRecord(tx, change.workspaceId);
    return { member: { ...member, role }, previousRole: member.role };
  });
}

/**
 * Removes a member and revokes their keys of this workspace, whose ids are returned.
 * @throws TandemError MEMBER_NOT_FOUND, LAST_OWNER, FORBIDDEN
 */
export async function removeMember(
  sql: SqlOrTx,
  change: MemberChange,
): Promise<{ member: MemberRow; revokedKeyIds: number[] }> {
  return await inTransaction(sql, async (tx) => {
    const member = await lockMember(tx, change);
    await requireAnotherOwner(tx, { ...change, member });
    const { workspaceId, userId } = change;
    await tx`delete from memberships where workspace_id = ${workspaceId} and user_id = ${userId}`;
    await leaveMemoryTeams(tx, { workspaceId, userId });
    await keepOwnerOfRecord(tx, workspaceId);
    return { member, revokedKeyIds: await revokeApiKeysOf(tx, change) };
  });
}

/** Returns a member's role and locks it until the transaction ends; null without membership. */
export async function holdMembership(
  tx: Tx,
  { workspaceId, userId }: { workspaceId: string; userId: number },
): Promise<Role | null> {
  const [row] = await tx<{ role: Role }[]>`
    select role from memberships where workspace_id = ${workspaceId} and user_id = ${userId} for share`;
  return row?.role ?? null;
}

async function lockMember(tx: Tx, { workspaceId, userId, actorRole }: MemberChange): Promise<MemberRow> {
  await lockWorkspace(tx, workspaceId);
  const member = await findMember(tx, { workspaceId, userId });
  if (member === null) throw new TandemError('MEMBER_NOT_FOUND', 'The workspace has no member with this user id.');
  requireRank(actorRole, member.role);
  return member;
}

/** @throws TandemError FORBIDDEN */
export function requireRank(actorRole: Role, role: Role): void {
  if (role === 'owner' && actorRole !== 'owner') {
    throw new TandemError('FORBIDDEN', 'Only owners can grant the owner role, or change or remove an owner.');
  }
}

async function requireAnotherOwner(tx: Tx, { workspaceId, member }: { workspaceId: string; member: MemberRow }) {
  if (member.role !== 'owner') return;
  const others = await tx`
    select 1 from memberships
    where workspace_id = ${workspaceId} and role = 'owner' and user_id <> ${member.userId} limit 1`;
  if (others.length === 0) {
    throw new TandemError('LAST_OWNER', 'The workspace must keep at least one owner. Add another owner first.');
  }
}

/** Keeps the workspace's `owner_user_id` one of its owners. */
async function keepOwnerOfRecord(tx: Tx, workspaceId: string): Promise<void> {
  await tx`
    update workspaces w set owner_user_id =
      (select m.user_id from memberships m where m.workspace_id = w.id and m.role = 'owner'
       order by m.created_at, m.user_id limit 1)
    where w.id = ${workspaceId} and not exists (
      select 1 from memberships m where m.workspace_id = w.id and m.user_id = w.owner_user_id and m.role = 'owner')`;
}

async function findMember(
  tx: Tx,
  { workspaceId, userId }: { workspaceId: string; userId: number },
): Promise<MemberRow | null> {
  const [row] = await tx<MemberRow[]>`${selectMembers(tx, workspaceId)} and m.user_id = ${userId}`;
  return row ?? null;
}

function selectMembers(sql: SqlOrTx, workspaceId: string) {
  return sql`
    select m.user_id, u.email, u.name, m.role, m.created_at from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspaceId}`;
}
