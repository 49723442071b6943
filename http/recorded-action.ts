import type { FastifyRequest } from 'fastify';
import type { Tx } from '../storage/database.ts';
import { type AuditInput, recordAudit } from '../storage/queries/audit.ts';
import { principalOf } from './auth.ts';

/** Writes the caller's action to the audit log, in the same transaction. */
export async function recordAction(
  tx: Tx,
  request: FastifyRequest,
  entry: Pick<AuditInput, 'action' | 'target' | 'details' | 'now'>,
): Promise<void> {
  const actor = principalOf(request);
  await recordAudit(tx, { ...entry, workspaceId: actor.workspaceId, actor, requestId: request.id });
}
