import type { Sql } from '../../storage/database.ts';
import { lostCompletions } from '../../storage/queries/completions.ts';
import type { LostOwner } from '../../storage/queries/nodes.ts';
import type { Logger } from '../logger.ts';
import { closeCompletion } from './completion-account.ts';

export interface LostCompletionsOptions {
  sql: Sql;
  lost: LostOwner;
  now: Date;
  logger: Logger;
}

/**
 * Ends the completions of a lost owner: releases their holds and lets their chats continue. A completion that cannot be
 * ended now waits for the next start of its node.
 */
export async function failLostCompletions(options: LostCompletionsOptions): Promise<number> {
  const { sql, now, logger } = options;
  let ended = 0;
  for (const { id, workspaceId, model } of await lostCompletions(sql, options.lost)) {
    try {
      const ending = { state: 'failed', model, usage: null, error: 'INTERRUPTED', turn: null } as const;
      await closeCompletion(sql, { id, workspaceId }, { ending, now });
      ended += 1;
    } catch (error) {
      logger.error({ completionId: id, err: error }, 'completion of a lost process could not be settled');
    }
  }
  if (ended > 0) logger.warn({ completions: ended }, 'released wallet holds of completions of a lost process');
  return ended;
}
