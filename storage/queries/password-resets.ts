import { createHmac } from 'node:crypto';
import type { SqlOrTx } from '../database.ts';
import { isSignedByAny } from '../secrets.ts';
import type { UserRow } from './workspaces.ts';

export const PASSWORD_RESET_MS = 3_600_000;

type Resettable = Pick<UserRow, 'id' | 'passwordHash'>;

/**
 * Creates a password reset token: user, expiry, and a signature of both and the current password hash. It works once,
 * because a new password invalidates all earlier tokens.
 */
export function passwordResetToken(user: Resettable, { secret, expiresAt }: { secret: Buffer; expiresAt: Date }) {
  const expiresS = Math.floor(expiresAt.getTime() / 1000);
  return `${user.id}.${expiresS}.${signatureOf(user, { secret, expiresS }).toString('base64url')}`;
}

/** Returns the token's user; null if it is invalid, used or expired. */
export async function userOfPasswordReset(
  sql: SqlOrTx,
  { token, secrets, now }: { token: string; secrets: readonly Buffer[]; now: Date },
): Promise<UserRow | null> {
  const [, id, expires, signature] = /^(\d{1,9})\.(\d{1,11})\.([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (id === undefined || expires === undefined || signature === undefined) return null;
  const expiresS = Number(expires);
  const [user] = await sql<UserRow[]>`select * from users where id = ${Number(id)}`;
  if (user === undefined || expiresS * 1000 <= now.getTime()) return null;
  const given = Buffer.from(signature, 'base64url');
  return isSignedByAny(given, secrets, (secret) => signatureOf(user, { secret, expiresS })) ? user : null;
}

function signatureOf({ id, passwordHash }: Resettable, { secret, expiresS }: { secret: Buffer; expiresS: number }) {
  return createHmac('sha256', secret)
    .update(`tandem-password-reset\n${id}\n${expiresS}\n${passwordHash ?? ''}`)
    .digest();
}
