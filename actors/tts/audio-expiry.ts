import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { forgetTtsAudio, ttsStreamsWithExpiredAudio } from '../../storage/queries/tts-streams.ts';
import type { Logger } from '../logger.ts';
import { startSweeper } from '../sweeper.ts';

/** Deletes the audio that was kept for webhooks once their URLs have expired. */
export interface AudioExpiry {
  /** One round over all that is due. */
  deleteExpired(): Promise<void>;
  close(): void;
}

export interface AudioExpiryOptions {
  sql: Sql;
  objects: Pick<ObjectStore, 'delete'>;
  /** Whose audio is in the store: other nodes have stores of their own. */
  node: string;
  clock: Clock;
  logger: Logger;
  /** Default: ten minutes. */
  intervalMs?: number;
}

const INTERVAL_MS = 600_000;
const AT_A_TIME = 100;

/** Looks at once and then again and again; what is due stands in the database. */
export function expireAudio({
  sql,
  objects,
  node,
  clock,
  logger,
  intervalMs = INTERVAL_MS,
}: AudioExpiryOptions): AudioExpiry {
  let isClosed = false;

  async function deleteExpired(): Promise<void> {
    const now = new Date(clock.now());
    let couldDeleteAll = true;
    let due: Awaited<ReturnType<typeof ttsStreamsWithExpiredAudio>>;
    do {
      due = await ttsStreamsWithExpiredAudio(sql, { node, now, limit: AT_A_TIME });
      for (const { id, audioKey } of due) {
        if (isClosed) return;
        try {
          // In this order: what dies in between is deleted once more.
          await objects.delete(audioKey);
          await forgetTtsAudio(sql, id);
        } catch (error) {
          couldDeleteAll = false;
          logger.warn({ streamId: id, err: error }, 'expired audio could not be deleted');
        }
      }
      // What could not be deleted would come up again at once.
    } while (due.length === AT_A_TIME && couldDeleteAll);
  }

  const failure = 'deleting expired audio failed';
  const sweeper = startSweeper({ sweep: deleteExpired, failure, everyMs: intervalMs, clock, logger });
  return {
    deleteExpired,
    close() {
      isClosed = true;
      sweeper.close();
    },
  };
}
