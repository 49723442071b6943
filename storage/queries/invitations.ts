import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { recordAudit } from './audit.ts';
import { isUuid } from './identifiers.ts';
import { joinWorkspace, type MemberRow, requireRank } from './memberships.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { lockWorkspace, type Role } from './workspaces.ts';

/** `member`: join the workspace. `account`: register with a new workspace. */
export type InvitationKind = 'member' | 'account';
export type InvitationStatus = 'pending' | 'accepted' | 'revoked' | 'expired';

export interface InvitationRow {
  id: string;
  workspaceId: string;
  kind: InvitationKind;
  /** Null for `account`. */
  role: Role | null;
  /** Lower case. */
  email: string;
  /** Null: created by the operator on the command line. */
  createdByUserId: number | null;
  createdAt: Date;
  expiresAt: Date;
  acceptedAt: Date | null;
  acceptedByUserId: number | null;
  revokedAt: Date | null;
}

export interface NewInvitation {
  workspaceId: string;
  kind: InvitationKind;
  role: Role | null;
  email: string;
  /** Null: the operator. */
  invitedBy: { userId: number; role: Role } | null;
  expiresAt: Date;
  now: Date;
}

/**
 * Stores an invitation and returns its token, which is not stored. Revokes an earlier pending invitation of the same
 * address and workspace, so that only one token works.
 * @throws TandemError ALREADY_MEMBER, FORBIDDEN if an admin invites an owner
 */
export async function createInvitation(
  sql: SqlOrTx,
  { invitedBy, email, now, ...rest }: NewInvitation,
): Promise<InvitationRow & { token: string }> {
  const token = `inv_${randomBytes(32).toString('base64url')}`;
  return await inTransaction(sql, async (tx) => {
    if (invitedBy !== null && rest.role !== null) requireRank(invitedBy.role, rest.role);
    const address = email.toLowerCase();
    // One at a time per workspace; otherwise two would not revoke each other.
    await lockWorkspace(tx, rest.workspaceId);
    if (rest.kind === 'member') await requireStranger(tx, { ...rest, email: address });
    await tx`
      update invitations set revoked_at = ${now}
      where workspace_id = ${rest.workspaceId} and email = ${address} and kind = ${rest.kind}
        and accepted_at is null and revoked_at is null`;
    const row = {
      ...rest,
      id: randomUUID(),
      email: address,
      tokenHash: hashOf(token),
      createdByUserId: invitedBy?.userId ?? null,
      createdAt: now,
    };
    const [invitation] = await tx<InvitationRow[]>`insert into invitations ${tx(row)} returning *`;
    return { ...invitation!, token };
  });
}

/** Newest first. */
export async function listInvitations(
  sql: SqlOrTx,
  { workspaceId }: { workspaceId: string },
  page: Page,
): Promise<PageOf<InvitationRow>> {
  const rows = await sql<InvitationRow[]>`
    select * from invitations where workspace_id = ${workspaceId}
    order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from invitations where workspace_id = ${workspaceId}`;
  return { rows, total: count?.total ?? 0 };
}

/** @throws TandemError INVITATION_NOT_FOUND, also for an accepted or revoked one */
export async function revokeInvitation(
  sql: SqlOrTx,
  { id, workspaceId, now }: { id: string; workspaceId: string; now: Date },
): Promise<InvitationRow> {
  const [revoked] = isUuid(id)
    ? await sql<InvitationRow[]>`
        update invitations set revoked_at = ${now}
        where id = ${id} and workspace_id = ${workspaceId} and accepted_at is null and revoked_at is null
        returning *`
    : [];
  if (revoked) return revoked;
  throw new TandemError('INVITATION_NOT_FOUND', 'The workspace has no pending invitation with this id.');
}

/**
 * Locks a token's workspace and invitation until the transaction ends.
 * @throws TandemError INVALID_INVITATION if the token is unknown, used, revoked, expired or for another address, or if
 * its creator may no longer invite
 */
export async function requireInvitation(
  sql: SqlOrTx,
  { token, email, now }: { token: string; email: string; now: Date },
): Promise<InvitationRow> {
  // The workspace before the invitation, as `createInvitation` does; the other order could deadlock.
  await sql`
    select w.id from workspaces w join invitations i on i.workspace_id = w.id
    where i.token_hash = ${hashOf(token)} for no key update of w`;
  const [invitation] = await sql<InvitationRow[]>`
    select i.* from invitations i
    where i.token_hash = ${hashOf(token)} and i.accepted_at is null and i.revoked_at is null
      and i.expires_at > ${now} and i.email = ${email.toLowerCase()}
      -- An admin who was removed must not come back through a token made before.
      and (i.created_by_user_id is null or exists (
        select 1 from memberships m
        where m.workspace_id = i.workspace_id and m.user_id = i.created_by_user_id
          and (m.role = 'owner' or (m.role = 'admin' and i.role is distinct from 'owner'))))
    for update of i`;
  if (invitation) return invitation;
  throw new TandemError(
    'INVALID_INVITATION',
    'This invitation is invalid, expired, used, or for another e-mail address. Ask for a new one.',
  );
}

/**
 * Uses up an invitation, in the transaction of `requireInvitation`. A `member` joins the workspace and is returned.
 * @throws TandemError ALREADY_MEMBER
 */
export async function acceptInvitation(
  tx: Tx,
  { invitation, userId, requestId, now }: { invitation: InvitationRow; userId: number; requestId: string; now: Date },
): Promise<MemberRow | null> {
  const { id, workspaceId, role } = invitation;
  await recordAudit(tx, {
    ...{ workspaceId, requestId, now },
    actor: { userId, apiKeyId: null },
    action: 'invitation.accepted',
    target: { type: 'invitation', id },
    details: { role },
  });
  await tx`update invitations set accepted_at = ${now}, accepted_by_user_id = ${userId} where id = ${id}`;
  return role === null ? null : await joinWorkspace(tx, { workspaceId, userId, role, now });
}

export function statusOf(row: InvitationRow, now: Date): InvitationStatus {
  if (row.acceptedAt !== null) return 'accepted';
  if (row.revokedAt !== null) return 'revoked';
  return row.expiresAt > now ? 'pending' : 'expired';
}

async function requireStranger(tx: Tx, { workspaceId, email }: { workspaceId: string; email: string }) {
  const members = await tx`
    select 1 from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspaceId} and u.email = ${email}`;
  if (members.length > 0) {
    throw new TandemError('ALREADY_MEMBER', 'The user is already a member of the workspace. Change the role instead.');
  }
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
