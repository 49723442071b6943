import type { SqlOrTx } from '../database.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import type { Plan, Role } from './workspaces.ts';

export interface ApiKeyRow {
  id: number;
  workspaceId: string;
  createdByUserId: number;
  name: string;
  /** First characters of the key. */
  prefix: string;
  last4: string;
  scopes: string[];
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
}

export interface ApiKeyBearer extends ApiKeyRow {
  workspaceName: string;
  plan: Plan;
  /** Role of the user who created the key; null once they left the workspace. */
  role: Role | null;
}

export interface CreateApiKeyInput {
  workspaceId: string;
  createdByUserId: number;
  name: string;
  prefix: string;
  last4: string;
  keyHash: Buffer;
  scopes?: string[];
  expiresAt?: Date | null;
  now: Date;
}

/**
 * Creates a key. Returns an existing one with the same hash in the workspace, so that a start with TANDEM_API_KEY is
 * repeatable.
 */
export async function createApiKey(sql: SqlOrTx, input: CreateApiKeyInput): Promise<ApiKeyRow> {
  const row = {
    workspaceId: input.workspaceId,
    createdByUserId: input.createdByUserId,
    name: input.name,
    prefix: input.prefix,
    last4: input.last4,
    keyHash: input.keyHash,
    scopes: input.scopes ?? [],
    expiresAt: input.expiresAt ?? null,
    createdAt: input.now,
  };
  const [inserted] = await sql<ApiKeyRow[]>`
    insert into api_keys ${sql(row)} on conflict (key_hash) do nothing returning ${columns(sql)}`;
  if (inserted) return inserted;
  const [known] = await sql<ApiKeyRow[]>`
    select ${columns(sql)} from api_keys k where key_hash = ${input.keyHash} and workspace_id = ${input.workspaceId}`;
  if (!known) throw new RangeError('this key belongs to another workspace');
  return known;
}

/** Finds a key that is neither revoked nor expired. */
export async function findApiKey(
  sql: SqlOrTx,
  { keyHash, now }: { keyHash: Buffer; now: Date },
): Promise<ApiKeyBearer | null> {
  const [row] = await sql<ApiKeyBearer[]>`
    ${selectBearers(sql, now)} and k.key_hash = ${keyHash}`;
  return row ?? null;
}

/** As `findApiKey`, by id, for open connections. */
export async function findApiKeyById(
  sql: SqlOrTx,
  { id, now }: { id: number; now: Date },
): Promise<ApiKeyBearer | null> {
  const [row] = await sql<ApiKeyBearer[]>`${selectBearers(sql, now)} and k.id = ${id}`;
  return row ?? null;
}

function selectBearers(sql: SqlOrTx, now: Date) {
  return sql`
    select k.id, k.workspace_id, k.created_by_user_id, k.name, k.prefix, k.last4, k.scopes, k.created_at,
      k.last_used_at, k.expires_at, k.revoked_at, w.name as workspace_name, w.plan, m.role
    from api_keys k
    join workspaces w on w.id = k.workspace_id
    left join memberships m on m.workspace_id = k.workspace_id and m.user_id = k.created_by_user_id
    where k.revoked_at is null and (k.expires_at is null or k.expires_at > ${now})`;
}

/** Stores the last use, at most once a minute per key, to avoid a row version per request. */
export async function touchApiKey(
  sql: SqlOrTx,
  { id, lastUsedAt, now }: Pick<ApiKeyRow, 'id' | 'lastUsedAt'> & { now: Date },
): Promise<void> {
  const minuteAgo = new Date(now.getTime() - 60_000);
  if (lastUsedAt !== null && lastUsedAt >= minuteAgo) return;
  await sql`
    update api_keys set last_used_at = ${now}
    where id = ${id} and (last_used_at is null or last_used_at < ${minuteAgo})`;
}

/** Lists keys that are not revoked, newest first; optionally those of one user. */
export async function listApiKeys(
  sql: SqlOrTx,
  { workspaceId, createdByUserId }: { workspaceId: string; createdByUserId?: number | undefined },
  page: Page,
): Promise<PageOf<ApiKeyRow>> {
  const matching = sql`
    workspace_id = ${workspaceId} and revoked_at is null
    ${createdByUserId === undefined ? sql`` : sql`and created_by_user_id = ${createdByUserId}`}`;
  const rows = await sql<ApiKeyRow[]>`
    select ${columns(sql)} from api_keys where ${matching}
    order by id desc limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from api_keys where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

/** False if the workspace (or the given user) has no such key, or it was already revoked. */
export async function revokeApiKey(
  sql: SqlOrTx,
  { workspaceId, id, createdByUserId, now }: RevokeApiKeyInput,
): Promise<boolean> {
  const result = await sql`
    update api_keys set revoked_at = ${now}
    where id = ${id} and workspace_id = ${workspaceId} and revoked_at is null
      ${createdByUserId === undefined ? sql`` : sql`and created_by_user_id = ${createdByUserId}`}`;
  return result.count === 1;
}

export interface RevokeApiKeyInput {
  workspaceId: string;
  id: number;
  createdByUserId?: number | undefined;
  now: Date;
}

/** Revokes the keys of a leaving user, so that they stay invalid if the user rejoins. Returns their ids. */
export async function revokeApiKeysOf(
  sql: SqlOrTx,
  { workspaceId, userId, now }: { workspaceId: string; userId: number; now: Date },
): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    update api_keys set revoked_at = ${now}
    where workspace_id = ${workspaceId} and created_by_user_id = ${userId} and revoked_at is null returning id`;
  return rows.map(({ id }) => id);
}

function columns(sql: SqlOrTx) {
  return sql`id, workspace_id, created_by_user_id, name, prefix, last4, scopes, created_at, last_used_at, expires_at,
    revoked_at`;
}
