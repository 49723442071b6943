import type { Sql } from '../../storage/database.ts';
import { lostEvaluations } from '../../storage/queries/evaluations.ts';
import type { LostOwner } from '../../storage/queries/nodes.ts';
import type { Logger } from '../logger.ts';
import { abandonEvaluation } from './evaluation-account.ts';

export interface LostEvaluationsOptions {
  sql: Sql;
  lost: LostOwner;
  now: Date;
  logger: Logger;
}

/**
 * Ends the evaluations of a lost owner and releases their holds. Those of a batch restart with the batch's next worker.
 * An evaluation that cannot be ended now waits for the next start of its node.
 */
export async function failLostEvaluations(options: LostEvaluationsOptions): Promise<number> {
  const { sql, now, logger } = options;
  let ended = 0;
  for (const { id, workspaceId, attempt } of await lostEvaluations(sql, options.lost)) {
    try {
      await abandonEvaluation(sql, { id, workspaceId, attempt, error: 'INTERRUPTED', now });
      ended += 1;
    } catch (error) {
      logger.error({ evaluationId: id, err: error }, 'evaluation of a lost process could not be settled');
    }
  }
  if (ended > 0) logger.warn({ evaluations: ended }, 'released wallet holds of evaluations of a lost process');
  return ended;
}
