import type { Sql } from '../../storage/database.ts';
import type { LostOwner } from '../../storage/queries/nodes.ts';
import { lostTtsStreams } from '../../storage/queries/tts-streams.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { Logger } from '../logger.ts';
import { closeStream } from './stream-account.ts';

export interface LostStreamsOptions {
  sql: Sql;
  lost: LostOwner;
  deliverer: Pick<Deliverer, 'enqueue'>;
  now: Date;
  logger: Logger;
}

/**
 * Ends the synthesis requests of a lost owner: refunds undelivered characters and sends each failure to webhooks once.
 * A request that cannot be ended now waits for the next start of its node.
 */
export async function failLostStreams(options: LostStreamsOptions): Promise<number> {
  const { sql, deliverer, now, logger } = options;
  const lost = await lostTtsStreams(sql, options.lost);
  let ended = 0;
  for (const stream of lost) {
    try {
      const ending = { outcome: 'failed', error: 'INTERRUPTED', refunds: 'undelivered' } as const;
      for (const id of await closeStream(sql, stream, { ending, now })) void deliverer.enqueue(id);
      ended += 1;
    } catch (error) {
      logger.error({ streamId: stream.id, err: error }, 'synthesis request of a lost process could not be settled');
    }
  }
  if (ended > 0)
    logger.warn({ texts: ended }, 'refunded what was not delivered of synthesis requests of a lost process');
  return ended;
}
