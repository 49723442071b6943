import type { Sql } from '../../storage/database.ts';
import { lostEvaluations } from '../../storage/queries/evaluations.ts';
import type { Logger } from '../logger.ts';
import { abandonEvaluation } from './evaluation-account.ts';

export interface LostEvaluationsOptions {
  sql: Sql;
  node: string;
  boot: string;
  now: Date;
  logger: Logger;
}

/**
 * Ends the evaluations that earlier boots of this node were at when they died: what each held is given back. Those of a
 * batch are begun again by whoever takes the batch. One that cannot be ended now is left to the next start.
 */
export async function failLostEvaluations(options: LostEvaluationsOptions): Promise<number> {
  const { sql, now, logger } = options;
  let ended = 0;
  for (const { id, workspaceId, attempt } of await lostEvaluations(sql, options)) {
    try {
      await abandonEvaluation(sql, { id, workspaceId, attempt, error: 'INTERRUPTED', now });
      ended += 1;
    } catch (error) {
      logger.error({ evaluationId: id, err: error }, 'an evaluation of an earlier run could not be ended');
    }
  }
  if (ended > 0) logger.warn({ evaluations: ended }, 'gave back what evaluations of an earlier run held');
  return ended;
}
