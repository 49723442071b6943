import type { Tx } from '../database.ts';
import { type AuditInput, recordAudit } from './audit.ts';
import { cancelLoginLinks } from './login-links.ts';
import { revokeSessionsOf } from './sessions.ts';
import type { UserRow } from './workspaces.ts';

export interface PasswordChange {
  /** Has the current hash, which must not have changed meanwhile. */
  user: Pick<UserRow, 'id' | 'passwordHash'>;
  passwordHash: string;
  endSessions: 'none' | { except: string | null };
  /** Action for the audit log of each of the user's workspaces. */
  action: Extract<AuditInput['action'], 'user.password_changed' | 'user.password_reset'>;
  requestId: string;
  now: Date;
}

/**
 * Stores a new password, cancels login links and ends sessions. Returns the ended sessions; null if the password
 * changed meanwhile, and then stores nothing.
 */
export async function changePassword(
  tx: Tx,
  { user, passwordHash, endSessions, action, requestId, now }: PasswordChange,
): Promise<string[] | null> {
  const changed = await tx`
    update users set password_hash = ${passwordHash}
    where id = ${user.id} and password_hash is not distinct from ${user.passwordHash}`;
  if (changed.count === 0) return null;
  await cancelLoginLinks(tx, { userId: user.id, now });
  const ended = endSessions === 'none' ? [] : await revokeSessionsOf(tx, { userId: user.id, ...endSessions, now });
  for (const workspaceId of await workspacesOf(tx, user.id)) {
    const actor = { userId: user.id, apiKeyId: null };
    await recordAudit(tx, { workspaceId, actor, action, target: { type: 'user', id: user.id }, requestId, now });
  }
  return ended;
}

export async function workspacesOf(tx: Tx, userId: number): Promise<string[]> {
  const rows = await tx<{ workspaceId: string }[]>`
    select workspace_id from memberships where user_id = ${userId} order by workspace_id`;
  return rows.map(({ workspaceId }) => workspaceId);
}
