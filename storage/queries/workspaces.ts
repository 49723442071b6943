import { randomUUID } from 'node:crypto';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';

export const PLANS = ['free', 'starter', 'pro', 'enterprise'] as const;
export type Plan = (typeof PLANS)[number];
export type Role = 'owner' | 'admin' | 'developer' | 'member' | 'viewer';

export interface WorkspaceRow {
  id: string;
  name: string;
  plan: Plan;
  ownerUserId: number;
  createdAt: Date;
}

export interface UserRow {
  id: number;
  /** Lower case. */
  email: string;
  passwordHash: string | null;
  name: string;
  createdAt: Date;
}

export interface CreateWorkspaceInput {
  name: string;
  plan: Plan;
  owner: { email: string; passwordHash: string | null; name?: string };
  now: Date;
}

/** Creates a workspace in one transaction, and its owner unless the e-mail address is known. */
export async function createWorkspace(
  sql: SqlOrTx,
  input: CreateWorkspaceInput,
): Promise<{ workspace: WorkspaceRow; user: UserRow }> {
  return await inTransaction(sql, async (tx) => {
    const user =
      (await findUserByEmail(tx, input.owner.email)) ?? (await createUser(tx, { ...input.owner, now: input.now }));
    const workspace = await openWorkspace(tx, { ...input, ownerUserId: user.id });
    return { workspace, user };
  });
}

export async function openWorkspace(
  sql: SqlOrTx,
  { name, plan, ownerUserId, now }: { name: string; plan: Plan; ownerUserId: number; now: Date },
): Promise<WorkspaceRow> {
  return await inTransaction(sql, async (tx) => {
    const row = { id: randomUUID(), name, plan, ownerUserId, createdByUserId: ownerUserId, createdAt: now };
    const [workspace] = await tx<WorkspaceRow[]>`insert into workspaces ${tx(row)} returning *`;
    await addMember(tx, { workspaceId: row.id, userId: ownerUserId, role: 'owner', now });
    return workspace!;
  });
}

/**
 * Returns the first workspace, or creates it. An owner without a password gets the given one. Safe on every
 * start, even if several nodes start together.
 */
export async function bootstrapWorkspace(
  sql: SqlOrTx,
  input: CreateWorkspaceInput,
): Promise<{ workspace: WorkspaceRow; user: UserRow; created: boolean }> {
  return await inTransaction(sql, async (tx) => {
    await tx`lock table workspaces in share row exclusive mode`;
    const workspace = await getFirstWorkspace(tx);
    if (!workspace) return { ...(await createWorkspace(tx, input)), created: true };
    const user = await ownerWithPassword(tx, workspace, input.owner.passwordHash);
    return { workspace, user, created: false };
  });
}

async function ownerWithPassword(tx: Tx, workspace: WorkspaceRow, passwordHash: string | null): Promise<UserRow> {
  const [user] = await tx<UserRow[]>`
    update users set password_hash = coalesce(password_hash, ${passwordHash})
    where id = ${workspace.ownerUserId} returning *`;
  return user!;
}

/** The workspace that was created first, which is the operator's. Null before the first start. */
export async function getFirstWorkspace(sql: SqlOrTx): Promise<WorkspaceRow | null> {
  const [row] = await sql<WorkspaceRow[]>`select * from workspaces order by position limit 1`;
  return row ?? null;
}

export async function operatorWorkspaceId(sql: SqlOrTx): Promise<string | null> {
  return (await getFirstWorkspace(sql))?.id ?? null;
}

export async function getWorkspace(sql: SqlOrTx, id: string): Promise<WorkspaceRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<WorkspaceRow[]>`select * from workspaces where id = ${id}`;
  return row ?? null;
}

export type WorkspaceOfUser = WorkspaceRow & { role: Role };

export async function listWorkspacesOfUser(sql: SqlOrTx, userId: number): Promise<WorkspaceOfUser[]> {
  return await sql<WorkspaceOfUser[]>`
    select w.*, m.role from workspaces w join memberships m on m.workspace_id = w.id
    where m.user_id = ${userId} order by w.created_at, w.id`;
}

/** Returns the user's role in the workspace; null without membership, and for an invalid id. */
export async function roleOf(
  sql: SqlOrTx,
  { workspaceId, userId }: { workspaceId: string; userId: number },
): Promise<Role | null> {
  if (!isUuid(workspaceId)) return null;
  const [row] = await sql<{ role: Role }[]>`
    select role from memberships where workspace_id = ${workspaceId} and user_id = ${userId}`;
  return row?.role ?? null;
}

export async function addMember(
  sql: SqlOrTx,
  { workspaceId, userId, role, now }: { workspaceId: string; userId: number; role: Role; now: Date },
): Promise<void> {
  await sql`
    insert into memberships (workspace_id, user_id, role, created_at)
    values (${workspaceId}, ${userId}, ${role}, ${now})
    on conflict (workspace_id, user_id) do update set role = excluded.role`;
}

export async function createUser(
  sql: SqlOrTx,
  { email, passwordHash, name = '', now }: { email: string; passwordHash: string | null; name?: string; now: Date },
): Promise<UserRow> {
  const row = { email: email.toLowerCase(), passwordHash, name, createdAt: now };
  const [user] = await sql<UserRow[]>`insert into users ${sql(row)} returning *`;
  return user!;
}

export async function findUserByEmail(sql: SqlOrTx, email: string): Promise<UserRow | null> {
  const [row] = await sql<UserRow[]>`select * from users where email = ${email.toLowerCase()}`;
  return row ?? null;
}

/**
 * Serialises changes that count rows of a workspace; otherwise two could count the same number. Without a transaction, it
 * only waits for running ones.
 */
export async function lockWorkspace(sql: SqlOrTx, workspaceId: string): Promise<void> {
  await sql`select id from workspaces where id = ${workspaceId} for no key update`;
}
