import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SqlOrTx, Tx } from '../database.ts';
import { recordAudit } from './audit.ts';
import type { UserRow } from './workspaces.ts';

export const PASSWORD_RESET_MS = 3_600_000;

type Resettable = Pick<UserRow, 'id' | 'passwordHash'>;

/**
 * The token of a link that resets a password: the user, when it expires, and a signature over both and the hash of the
 * present password. So it works once: a new password makes every earlier token of the user invalid.
 */
export function passwordResetToken(user: Resettable, { secret, expiresAt }: { secret: Buffer; expiresAt: Date }) {
  const expiresS = Math.floor(expiresAt.getTime() / 1000);
  return `${user.id}.${expiresS}.${signatureOf(user, { secret, expiresS }).toString('base64url')}`;
}

/** The user whose password the token resets; null if it is not ours, was used, or has expired. */
export async function userOfPasswordReset(
  sql: SqlOrTx,
  { token, secret, now }: { token: string; secret: Buffer; now: Date },
): Promise<UserRow | null> {
  const [, id, expires, signature] = /^(\d{1,9})\.(\d{1,11})\.([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (id === undefined || expires === undefined || signature === undefined) return null;
  const expiresS = Number(expires);
  const [user] = await sql<UserRow[]>`select * from users where id = ${Number(id)}`;
  if (user === undefined || expiresS * 1000 <= now.getTime()) return null;
  const given = Buffer.from(signature, 'base64url');
  const expected = signatureOf(user, { secret, expiresS });
  return given.length === expected.length && timingSafeEqual(given, expected) ? user : null;
}

/**
 * Stores the new password and ends all sessions of the user. Returns the sessions that ended; null if the password
 * changed meanwhile, and then nothing is stored.
 */
export async function resetPassword(
  tx: Tx,
  { user, passwordHash, requestId, now }: { user: Resettable; passwordHash: string; requestId: string; now: Date },
): Promise<string[] | null> {
  const changed = await tx`
    update users set password_hash = ${passwordHash}
    where id = ${user.id} and password_hash is not distinct from ${user.passwordHash}`;
  if (changed.count === 0) return null;
  const sessions = await tx<{ id: string }[]>`
    update sessions set revoked_at = ${now} where user_id = ${user.id} and revoked_at is null returning id`;
  for (const workspaceId of await workspacesOf(tx, user.id)) {
    const actor = { userId: user.id, apiKeyId: null };
    const target = { type: 'user', id: user.id };
    await recordAudit(tx, { workspaceId, actor, action: 'user.password_reset', target, requestId, now });
  }
  return sessions.map(({ id }) => id);
}

/** Every workspace that the user is a member of. */
export async function workspacesOf(sql: SqlOrTx, userId: number): Promise<string[]> {
  const rows = await sql<{ workspaceId: string }[]>`
    select workspace_id from memberships where user_id = ${userId} order by workspace_id`;
  return rows.map(({ workspaceId }) => workspaceId);
}

function signatureOf({ id, passwordHash }: Resettable, { secret, expiresS }: { secret: Buffer; expiresS: number }) {
  return createHmac('sha256', secret)
    .update(`tandem-password-reset\n${id}\n${expiresS}\n${passwordHash ?? ''}`)
    .digest();
}
