import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { forgetTtsAudio, ttsStreamsWithExpiredAudio } from '../../storage/queries/tts-streams.ts';
import type { Logger } from '../logger.ts';
import { startSweeper } from '../sweeper.ts';

export interface AudioExpiry {
  deleteExpired(): Promise<void>;
  close(): void;
}

export interface AudioExpiryOptions {
  sql: Sql;
  objects: Pick<ObjectStore, 'delete' | 'isShared'>;
  /** A store that is not shared contains only audio of this node. */
  node: string;
  clock: Clock;
  logger: Logger;
  /** Default: ten minutes. */
  intervalMs?: number;
}

const INTERVAL_MS = 600_000;
const AT_A_TIME = 100;

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
    const ofNode = objects.isShared ? null : node;
    let couldDeleteAll = true;
    let due: Awaited<ReturnType<typeof ttsStreamsWithExpiredAudio>>;
    do {
      due = await ttsStreamsWithExpiredAudio(sql, { node: ofNode, now, limit: AT_A_TIME });
      for (const { id, audioKey } of due) {
        if (isClosed) return;
        try {
          // In this order, so that a crash in between leads to a second deletion.
          await objects.delete(audioKey);
          await forgetTtsAudio(sql, id, { node, now });
        } catch (error) {
          couldDeleteAll = false;
          logger.warn({ streamId: id, err: error }, 'expired audio could not be deleted');
        }
      }
      // Stop, because the failed ones would be returned again at once.
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
