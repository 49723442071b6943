import type { Sql } from '../../storage/database.ts';
import { lostTtsStreams } from '../../storage/queries/tts-streams.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { Logger } from '../logger.ts';
import { closeStream } from './stream-account.ts';

export interface LostStreamsOptions {
  sql: Sql;
  node: string;
  boot: string;
  deliverer: Pick<Deliverer, 'enqueue'>;
  now: Date;
  logger: Logger;
}

/**
 * Ends the texts that earlier boots of this node were speaking when they died: what their listeners did not receive is
 * refunded, and webhooks are told that it failed, once. One that cannot be ended now is left to the next start.
 */
export async function failLostStreams(options: LostStreamsOptions): Promise<number> {
  const { sql, deliverer, now, logger } = options;
  const lost = await lostTtsStreams(sql, options);
  let ended = 0;
  for (const stream of lost) {
    try {
      const ending = { outcome: 'failed', error: 'INTERRUPTED', refunds: 'undelivered' } as const;
      for (const id of await closeStream(sql, stream, { ending, now })) await deliverer.enqueue(id);
      ended += 1;
    } catch (error) {
      logger.error({ streamId: stream.id, err: error }, 'synthesis request of an earlier boot could not be settled');
    }
  }
  if (ended > 0)
    logger.warn({ texts: ended }, 'refunded what was not delivered of texts that an earlier run was speaking');
  return ended;
}
