import { randomUUID } from 'node:crypto';
import type { SqlOrTx } from '../database.ts';
import { isUuid } from './identifiers.ts';

/** What a token stands for. */
export interface SessionRow {
  /** The `jti` of the token. */
  id: string;
  userId: number;
  createdAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
}

export async function openSession(
  sql: SqlOrTx,
  { userId, expiresAt, now }: { userId: number; expiresAt: Date; now: Date },
): Promise<SessionRow> {
  // What is over a day ago is of no use to anybody; logins are rare enough to sweep on each.
  const dayAgo = new Date(now.getTime() - 86_400_000);
  await sql`delete from sessions where user_id = ${userId} and expires_at < ${dayAgo}`;
  const row = { id: randomUUID(), userId, createdAt: now, expiresAt };
  const [session] = await sql<SessionRow[]>`insert into sessions ${sql(row)} returning *`;
  return session!;
}

/** The session if it is neither over nor ended. */
export async function findSession(
  sql: SqlOrTx,
  { id, userId, now }: { id: string; userId: number; now: Date },
): Promise<SessionRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<SessionRow[]>`
    select * from sessions where id = ${id} and user_id = ${userId} and revoked_at is null and expires_at > ${now}`;
  return row ?? null;
}

/** False when it had ended before. */
export async function revokeSession(sql: SqlOrTx, { id, now }: { id: string; now: Date }): Promise<boolean> {
  const result = await sql`update sessions set revoked_at = ${now} where id = ${id} and revoked_at is null`;
  return result.count === 1;
}
