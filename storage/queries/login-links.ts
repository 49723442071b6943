import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { SqlOrTx } from '../database.ts';
import type { UserRow } from './workspaces.ts';

/** Lifetime of a link requested by the operator. */
export const LOGIN_LINK_MS = 15 * 60_000;
/** Lifetime of the link that the server prints at its start. */
export const OWNER_LINK_MS = 24 * 3_600_000;

/** Stores a link and returns its token, which is not stored. Deletes links of the user that expired over a day ago. */
export async function createLoginLink(
  sql: SqlOrTx,
  { userId, lifetimeMs, now }: { userId: number; lifetimeMs: number; now: Date },
): Promise<{ token: string; expiresAt: Date }> {
  const token = `link_${randomBytes(32).toString('base64url')}`;
  const expiresAt = new Date(now.getTime() + lifetimeMs);
  const dayAgo = new Date(now.getTime() - 86_400_000);
  await sql`delete from login_links where user_id = ${userId} and expires_at < ${dayAgo}`;
  const row = { id: randomUUID(), userId, tokenHash: hashOf(token), createdAt: now, expiresAt };
  await sql`insert into login_links ${sql(row)}`;
  return { token, expiresAt };
}

/**
 * Uses up the link and returns its user. Null if the token is unknown, expired or used. Only one of two attempts
 * succeeds.
 */
export async function takeLoginLink(
  sql: SqlOrTx,
  { token, now }: { token: string; now: Date },
): Promise<UserRow | null> {
  const [user] = await sql<UserRow[]>`
    with taken as (
      update login_links set used_at = ${now}
      where token_hash = ${hashOf(token)} and used_at is null and expires_at > ${now}
      returning user_id)
    select u.* from users u join taken on taken.user_id = u.id`;
  return user ?? null;
}

/** Invalidates older links after a password change. */
export async function cancelLoginLinks(sql: SqlOrTx, { userId, now }: { userId: number; now: Date }): Promise<void> {
  await sql`update login_links set used_at = ${now} where user_id = ${userId} and used_at is null`;
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
