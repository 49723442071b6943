import type { FastifyRequest } from 'fastify';
import type { Tx } from '../storage/database.ts';
import { type AuditInput, recordAudit } from '../storage/queries/audit.ts';
import { principalOf } from './auth.ts';

/** Notes what the caller of a request did to their workspace, in the transaction that does it. */
export async function recordAction(
  tx: Tx,
  request: FastifyRequest,
  entry: Pick<AuditInput, 'action' | 'target' | 'details' | 'now'>,
): Promise<void> {
  const actor = principalOf(request);
  await recordAudit(tx, { ...entry, workspaceId: actor.workspaceId, actor, requestId: request.id });
}
