import type { Sql } from '../../storage/database.ts';
import { lostCompletions } from '../../storage/queries/completions.ts';
import type { Logger } from '../logger.ts';
import { closeCompletion } from './completion-account.ts';

export interface LostCompletionsOptions {
  sql: Sql;
  node: string;
  boot: string;
  now: Date;
  logger: Logger;
}

/**
 * Ends the completions that earlier boots of this node were generating when they died: what each held is given back, and
 * its chat is free to go on. One that cannot be ended now is left to the next start.
 */
export async function failLostCompletions(options: LostCompletionsOptions): Promise<number> {
  const { sql, now, logger } = options;
  let ended = 0;
  for (const { id, workspaceId, model } of await lostCompletions(sql, options)) {
    try {
      const ending = { state: 'failed', model, usage: null, error: 'INTERRUPTED', turn: null } as const;
      await closeCompletion(sql, { id, workspaceId }, { ending, now });
      ended += 1;
    } catch (error) {
      logger.error({ completionId: id, err: error }, 'completion of an earlier boot could not be settled');
    }
  }
  if (ended > 0) logger.warn({ completions: ended }, 'released wallet holds of completions of earlier boots');
  return ended;
}
