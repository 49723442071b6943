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
      logger.error({ evaluationId: id, err: error }, 'evaluation of an earlier boot could not be settled');
    }
  }
  if (ended > 0) logger.warn({ evaluations: ended }, 'released wallet holds of evaluations of earlier boots');
  return ended;
}
