import type { Clock } from '../../runtime/clock.ts';
import { repeat } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { forgetTtsAudio, ttsStreamsWithExpiredAudio } from '../../storage/queries/tts-streams.ts';
import type { Logger } from '../logger.ts';

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
  const closing = new AbortController();

  async function deleteExpired(): Promise<void> {
    const now = new Date(clock.now());
    let couldDeleteAll = true;
    let due: Awaited<ReturnType<typeof ttsStreamsWithExpiredAudio>>;
    do {
      due = await ttsStreamsWithExpiredAudio(sql, { node, now, limit: AT_A_TIME });
      for (const { id, audioKey } of due) {
        if (closing.signal.aborted) return;
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

  const warn = (error: unknown) => logger.warn({ err: error }, 'deleting expired audio failed');
  void repeat(() => deleteExpired().catch(warn), { everyMs: intervalMs, clock, signal: closing.signal });
  return {
    deleteExpired,
    close: () => closing.abort(),
  };
}
