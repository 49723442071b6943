import { randomUUID } from 'node:crypto';
import type { SqlOrTx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/** Client of a login, as it describes itself. */
export interface SessionClient {
  userAgent: string | null;
  address: string | null;
}

export interface SessionRow extends SessionClient {
  /** The `jti` of the token. */
  id: string;
  userId: number;
  createdAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
  /** To the minute. */
  lastUsedAt: Date | null;
}

export async function openSession(
  sql: SqlOrTx,
  { userId, expiresAt, now, userAgent, address }: { userId: number; expiresAt: Date; now: Date } & SessionClient,
): Promise<SessionRow> {
  // Delete sessions that expired over a day ago. Logins are rare enough to do it at each.
  const dayAgo = new Date(now.getTime() - 86_400_000);
  await sql`delete from sessions where user_id = ${userId} and expires_at < ${dayAgo}`;
  const row = { id: randomUUID(), userId, createdAt: now, expiresAt, userAgent, address };
  const [session] = await sql<SessionRow[]>`insert into sessions ${sql(row)} returning *`;
  return session!;
}

/** Finds a session that is neither expired nor revoked. */
export async function findSession(
  sql: SqlOrTx,
  { id, userId, now }: { id: string; userId: number; now: Date },
): Promise<SessionRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<SessionRow[]>`
    select * from sessions where id = ${id} and user_id = ${userId} and revoked_at is null and expires_at > ${now}`;
  return row ?? null;
}

/** False if it was already revoked. */
export async function revokeSession(sql: SqlOrTx, { id, now }: { id: string; now: Date }): Promise<boolean> {
  const result = await sql`update sessions set revoked_at = ${now} where id = ${id} and revoked_at is null`;
  return result.count === 1;
}

/** Newest first. */
export async function listSessions(
  sql: SqlOrTx,
  { userId, now }: { userId: number; now: Date },
  page: Page,
): Promise<PageOf<SessionRow>> {
  const active = sql`user_id = ${userId} and revoked_at is null and expires_at > ${now}`;
  const rows = await sql<SessionRow[]>`
    select * from sessions where ${active} order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from sessions where ${active}`;
  return { rows, total: count?.total ?? 0 };
}

/** False unless it is an active session of the user. */
export async function revokeSessionOf(
  sql: SqlOrTx,
  { id, userId, now }: { id: string; userId: number; now: Date },
): Promise<boolean> {
  if (!isUuid(id)) return false;
  const result = await sql`
    update sessions set revoked_at = ${now}
    where id = ${id} and user_id = ${userId} and revoked_at is null and expires_at > ${now}`;
  return result.count === 1;
}

/** Revokes the user's active sessions, except one. Returns their ids. */
export async function revokeSessionsOf(
  sql: SqlOrTx,
  { userId, except, now }: { userId: number; except: string | null; now: Date },
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    update sessions set revoked_at = ${now}
    where user_id = ${userId} and revoked_at is null and expires_at > ${now} and id is distinct from ${except}::uuid
    returning id`;
  return rows.map(({ id }) => id);
}

/** Stores the last use of a session, to the minute. */
export async function touchSession(
  sql: SqlOrTx,
  { id, lastUsedAt, now }: Pick<SessionRow, 'id' | 'lastUsedAt'> & { now: Date },
): Promise<void> {
  const minuteAgo = new Date(now.getTime() - 60_000);
  if (lastUsedAt !== null && lastUsedAt >= minuteAgo) return;
  await sql`
    update sessions set last_used_at = ${now}
    where id = ${id} and (last_used_at is null or last_used_at < ${minuteAgo})`;
}
