import { rm } from 'node:fs/promises';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { recordAudit } from '../../storage/queries/audit.ts';
import { eraseCall } from '../../storage/queries/call-erasure.ts';
import {
  addErased,
  callsWithNumber,
  claimErasure,
  completeErasure,
  type ErasedRecording,
  eraseDeliveriesNaming,
  erasedRecordings,
  markPurged,
  type RunningErasure,
  releaseErasure,
} from '../../storage/queries/erasures.ts';
import type { Logger } from '../logger.ts';
import { audioKey, growingFile, keysOfRecording, RECORDINGS_PREFIX } from '../recordings/recording-names.ts';
import { ABANDONED_AFTER_MS, SETTLED_AFTER_MS } from '../recordings/retention.ts';
import { startSweeper } from '../sweeper.ts';
import type { Eraser } from './eraser.ts';

export interface EraserOptions {
  sql: Sql;
  objects: Pick<ObjectStore, 'delete' | 'isShared'>;
  node: string;
  recordingsDir: string;
  clock: Clock;
  logger: Logger;
}

const EVERY_MS = 60_000;
const LEASE_MS = 600_000;
/** Longest difference between clocks, and between the time of an erasure and its commit. */
const CLOCK_SLACK_MS = 600_000;
const BATCH = 100;
/** Then a round ends, so that an unavailable object store does not delay requested erasures. */
const MOST_FAILURES = 5;

/**
 * Works once a minute and on request. A lease ensures that only one node works on an erasure. It runs until no call
 * with the number is left, so it waits for live calls.
 */
export function startEraser(options: EraserOptions): Eraser & Disposable {
  const { sql, objects, node, clock, logger } = options;
  let isClosed = false;
  /** Last recording of a round that ended early; the next round begins after it. */
  let purgedUpTo: string | null = null;
  /** Recordings of this node that were deleted before then are deleted here too. */
  let ownSince = new Date(0);
  const deletedHere = new Set<string>();
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  async function round(): Promise<void> {
    const done: string[] = [];
    while (!isClosed) {
      const erasure = await claimErasure(sql, { now: new Date(clock.now()), leaseMs: LEASE_MS, except: done });
      if (erasure === null) break;
      done.push(erasure.id);
      await erase(erasure).catch((error) => {
        logger.warn({ erasureId: erasure.id, err: error }, 'erasure failed, and will be repeated');
      });
    }
    await purge();
  }

  async function erase(erasure: RunningErasure): Promise<void> {
    let isComplete = true;
    for (let after: string | null = null; ; ) {
      const batch = await callsWithNumber(sql, erasure, { after, limit: BATCH });
      for (const { callId } of batch) {
        if (isClosed) return await releaseErasure(sql, erasure.id);
        if (!(await eraseOne(erasure, callId))) isComplete = false;
        after = callId;
      }
      if (batch.length < BATCH) break;
    }
    while (!isClosed && (await eraseDeliveriesNaming(sql, erasure, { limit: BATCH })));
    if (isClosed || !isComplete) await releaseErasure(sql, erasure.id);
    else await complete(erasure);
  }

  /** False: the call is in use. */
  async function eraseOne({ id }: RunningErasure, callId: string): Promise<boolean> {
    try {
      await inTransaction(sql, async (tx) => {
        const erased = await eraseCall(tx, { callId, now: new Date(clock.now()) });
        if (erased !== null) await addErased(tx, id, erased);
      });
      return true;
    } catch (error) {
      if (error instanceof TandemError && error.code === 'CALL_IN_USE') return false;
      throw error;
    }
  }

  async function complete({ id, workspaceId }: RunningErasure): Promise<void> {
    const now = new Date(clock.now());
    await inTransaction(sql, async (tx) => {
      const row = await completeErasure(tx, { id, now });
      if (row === null) return;
      await recordAudit(tx, {
        ...{ workspaceId, actor: null, action: 'erasure.completed', target: { type: 'erasure', id }, now },
        details: { last4: row.last4, deleted: { ...row.deleted } },
      });
    });
  }

  async function purge(): Promise<void> {
    const startedAtMs = clock.now();
    const isWhole = purgedUpTo === null;
    const settledBefore = new Date(startedAtMs - SETTLED_AFTER_MS);
    const abandonedBefore = new Date(startedAtMs - ABANDONED_AFTER_MS);
    const shared = objects.isShared ? { ownSince, abandonedBefore } : null;
    let failures = 0;
    while (!isClosed) {
      const page = { node, settledBefore, shared, afterId: purgedUpTo, limit: BATCH };
      const batch: ErasedRecording[] = await erasedRecordings(sql, page);
      for (const recording of batch) {
        const { id, objectKey, ownerNode, erasedAt, purgedAt } = recording;
        purgedUpTo = id;
        // Only the owner knows that nothing is left on its disk, which the store would still upload.
        const isSettled = erasedAt < (ownerNode === node ? settledBefore : abandonedBefore);
        if (purgedAt !== null && !isSettled && deletedHere.has(id)) continue;
        try {
          await deleteFiles(options, recording);
          await markPurged(sql, { id, now: new Date(clock.now()), isSettled });
          if (isSettled) deletedHere.delete(id);
          else deletedHere.add(id);
        } catch (error) {
          logger.warn({ id, objectKey, err: error }, 'object of a deleted call, voice or synthesis request remains');
          failures += 1;
          if (failures === MOST_FAILURES) return;
        }
      }
      if (batch.length < BATCH) {
        purgedUpTo = null;
        if (isWhole && failures === 0) ownSince = new Date(startedAtMs - CLOCK_SLACK_MS);
        return;
      }
    }
  }

  function work(): Promise<void> {
    if (running === null) {
      running = round().finally(() => {
        running = null;
      });
      return running;
    }
    // The current round may have missed what was requested after its start.
    next ??= running
      .catch(() => {})
      .then(() => {
        next = null;
        return work();
      });
    return next;
  }

  const sweeper = startSweeper({ sweep: work, failure: 'erasing failed', everyMs: EVERY_MS, clock, logger });
  return {
    work,
    [Symbol.dispose]() {
      isClosed = true;
      sweeper.close();
    },
  };
}

async function deleteFiles(
  { objects, recordingsDir }: EraserOptions,
  { id, workspaceId, objectKey }: ErasedRecording,
): Promise<void> {
  const forms = [true, false];
  const stored = objectKey === null ? forms.map((isSealed) => audioKey({ workspaceId, id, isSealed })) : [objectKey];
  for (const key of stored.flatMap(keysOf)) await objects.delete(key);
  for (const isSealed of forms) await rm(growingFile(recordingsDir, { id, isSealed }), { force: true });
}

/** Voice samples and synthesised audio have one form. */
function keysOf(objectKey: string): string[] {
  return objectKey.startsWith(RECORDINGS_PREFIX) ? keysOfRecording(objectKey) : [objectKey];
}
