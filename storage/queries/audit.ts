import type { SqlOrTx } from '../database.ts';
import { jsonb } from './json-columns.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/** Audited actions: everything that changes permissions, spending, or the routes of calls. */
export const AUDIT_ACTIONS = [
  'workspace.created',
  'member.added',
  'member.role_changed',
  'member.removed',
  'invitation.created',
  'invitation.revoked',
  'invitation.accepted',
  'api_key.created',
  'api_key.revoked',
  'trunk.created',
  'trunk.updated',
  'trunk.deleted',
  'number.rented',
  'number.inbound_changed',
  'number.released',
  'number.verified',
  'number.verification_started',
  'caller_id.changed',
  'user.reset_link_created',
  'user.login_link_created',
  'user.password_changed',
  'user.password_reset',
  'wallet.topped_up',
  'wallet.debited',
  'plan.changed',
  'price.changed',
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.replayed',
  'callback.replayed',
  'voice.created',
  'voice.samples_added',
  'voice.updated',
  'voice.deleted',
  'memory_collection.created',
  'memory_collection.deleted',
  'rubric.created',
  'rubric.updated',
  'rubric.deleted',
  'recording_settings.updated',
  'recording.deleted',
  'call.supervised',
  'call.deleted',
  'erasure.requested',
  'erasure.completed',
  'calling_rules.updated',
  'do_not_call.added',
  'do_not_call.removed',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface AuditRow {
  id: bigint;
  workspaceId: string;
  at: Date;
  /** Null for actions of the platform. */
  actorUserId: number | null;
  actorApiKeyId: number | null;
  action: AuditAction;
  targetType: string;
  targetId: string;
  details: Record<string, unknown>;
  requestId: string | null;
}

export interface AuditInput {
  workspaceId: string;
  /** Accepts a `Principal`. */
  actor: { userId: number; apiKeyId: number | null } | null;
  action: AuditAction;
  target: { type: string; id: string | number };
  /** Details for investigations, without secrets. */
  details?: Record<string, unknown>;
  requestId?: string | null;
  now: Date;
}

/** Records a privileged action. Call it in the action's transaction, so that both commit or neither. */
export async function recordAudit(sql: SqlOrTx, input: AuditInput): Promise<void> {
  const row = {
    workspaceId: input.workspaceId,
    at: input.now,
    actorUserId: input.actor?.userId ?? null,
    actorApiKeyId: input.actor?.apiKeyId ?? null,
    action: input.action,
    targetType: input.target.type,
    targetId: String(input.target.id),
    details: jsonb(sql, input.details ?? {}),
    requestId: input.requestId ?? null,
  };
  await sql`insert into audit_log ${sql(row)}`;
}

export interface AuditFilter {
  workspaceId: string;
  action?: AuditAction | undefined;
  actorUserId?: number | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/** Newest first. */
export async function listAudit(sql: SqlOrTx, filter: AuditFilter, page: Page): Promise<PageOf<AuditRow>> {
  const { workspaceId, action, actorUserId, from, to } = filter;
  const matching = sql`
    workspace_id = ${workspaceId}
    ${action === undefined ? sql`` : sql`and action = ${action}`}
    ${actorUserId === undefined ? sql`` : sql`and actor_user_id = ${actorUserId}`}
    ${from === undefined ? sql`` : sql`and at >= ${from}`}
    ${to === undefined ? sql`` : sql`and at < ${to}`}`;
  const rows = await sql<AuditRow[]>`
    select * from audit_log where ${matching} order by id desc limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from audit_log where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}
