import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import {
  deleteExpiredRecording,
  expiredRecordings,
  forgetObjectsOfRecording,
  recordingsToPurge,
} from '../../storage/queries/recording-retention.ts';
import type { Logger } from '../logger.ts';
import { startSweeper } from '../sweeper.ts';
import { keysOfRecording } from './recording-names.ts';

/** Deletes recordings whose retention by workspace or operator has ended. */
export interface RecordingRetention {
  sweep(): Promise<void>;
  close(): void;
}

export interface RecordingRetentionOptions {
  sql: Sql;
  objects: Pick<ObjectStore, 'delete' | 'isShared'>;
  /** A store that is not shared contains only objects of this node's calls. */
  node: string;
  /** Longest retention for any workspace, in days; 0: the workspace decides. Default 0. */
  mostDays?: number;
  clock: Clock;
  logger: Logger;
  /** Default: an hour. */
  intervalMs?: number;
}

const INTERVAL_MS = 3_600_000;
const AT_A_TIME = 100;
/** Until then each round deletes the objects again, because an upload or encoding may have been in progress. */
export const SETTLED_AFTER_MS = 3_600_000;
/** Then another node gives up waiting for the one that may have the file on its disk. */
export const ABANDONED_AFTER_MS = 30 * 24 * 3_600_000;

/**
 * Sweeps at once and then every hour. It marks a recording as deleted, which the API shows at once, then deletes its
 * objects in every format, then forgets its key. Each step is repeatable, so a killed process leaves the rest to the
 * next round.
 */
export function expireRecordings(options: RecordingRetentionOptions): RecordingRetention {
  const { sql, objects, mostDays = 0, clock, logger, intervalMs = INTERVAL_MS } = options;
  let isClosed = false;
  /** Recordings of other nodes whose objects this one has deleted already. */
  let deletedForOthers = new Set<string>();

  async function markExpired(): Promise<void> {
    const now = new Date(clock.now());
    for (;;) {
      const due = await expiredRecordings(sql, { now, mostDays, limit: AT_A_TIME });
      for (const { id } of due) {
        if (isClosed) return;
        if (await deleteExpiredRecording(sql, { id, now, mostDays }))
          logger.info({ recordingId: id }, 'recording expired');
      }
      if (due.length < AT_A_TIME) return;
    }
  }

  async function purge(): Promise<void> {
    const node = objects.isShared ? null : options.node;
    const waiting = new Set<string>();
    for (let afterId: string | null = null; ; ) {
      const batch = await recordingsToPurge(sql, { node, afterId, limit: AT_A_TIME });
      for (const { id, objectKey, deletedAt, node: owner } of batch) {
        if (isClosed) return;
        afterId = id;
        const ageMs = clock.now() - deletedAt.getTime();
        const isOwn = owner === options.node;
        // Only the owner knows that nothing is left on its disk, which the store would still upload.
        const isSettled = ageMs >= (isOwn ? SETTLED_AFTER_MS : ABANDONED_AFTER_MS);
        if (!isOwn && !isSettled) waiting.add(id);
        if (!isSettled && deletedForOthers.has(id)) continue;
        try {
          for (const key of keysOfRecording(objectKey)) await objects.delete(key);
          if (isSettled) await forgetObjectsOfRecording(sql, id);
        } catch (error) {
          waiting.delete(id);
          logger.warn({ recordingId: id, err: error }, 'expired recording could not be deleted');
        }
      }
      if (batch.length < AT_A_TIME) break;
    }
    deletedForOthers = waiting;
  }

  async function sweep(): Promise<void> {
    await markExpired();
    await purge();
  }

  const failure = 'deleting expired recordings failed';
  const sweeper = startSweeper({ sweep, failure, everyMs: intervalMs, clock, logger });
  return {
    sweep,
    close() {
      isClosed = true;
      sweeper.close();
    },
  };
}
