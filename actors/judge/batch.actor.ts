import { randomUUID } from 'node:crypto';
import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import type { JudgedSome } from '../../machines/judge-batch.machine.ts';
import { judgeBatchMachine } from '../../machines/judge-batch.machine.ts';
import type { Clock } from '../../runtime/clock.ts';
import { tick } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { JobQueue } from '../../storage/jobs.ts';
import {
  abandonedJudgeBatches,
  claimJudgeBatch,
  endJudgeBatch,
  type JudgeBatchRow,
  releaseJudgeBatch,
  renewJudgeBatch,
} from '../../storage/queries/judge-batches.ts';
import type { Logger } from '../logger.ts';
import { judgeSomeOf } from './batch-calls.ts';
import type { Judging } from './judging.ts';

export interface JudgeBatchesOptions {
  sql: Sql;
  jobs: Pick<JobQueue, 'add' | 'work'>;
  judging: Pick<Judging, 'judge'>;
  clock: Clock;
  logger: Logger;
  /** Interval of searches for missed batches. Default 15 000. */
  sweepIntervalMs?: number;
  /** Longest delay of a batch after a kill -9. Default 60 000. */
  leaseMs?: number;
}

export interface JudgeBatches {
  /** Starts to take jobs and to sweep, beginning with batches of an earlier process. */
  start(): Promise<void>;
  /** Call it after the row is committed. Never rejects: the sweeper finds lost jobs. */
  enqueue(batchId: string): Promise<void>;
  /** Takes batches without a lease. Resolves when none is running here. */
  sweep(): Promise<void>;
  /** Stops running batches and releases them for the next process. Idempotent. */
  close(): Promise<void>;
}

/** Batches on this node at a time, each of another workspace. Others wait in the database. */
const AT_ONCE = 8;
const RENEWALS_PER_LEASE = 4;

/**
 * Runs judge batches. A batch's row says which calls are judged and which node has the lease. A job starts a batch, or
 * the sweeper if the job was lost. The lease is renewed while the node lives. One run of the machine is one node's
 * turn. A process killed at any point leaves each call both judged and charged, or neither.
 */
export function createJudgeBatches(options: JudgeBatchesOptions): JudgeBatches {
  const { sql, jobs, judging, clock, logger, sweepIntervalMs = 15_000, leaseMs = 60_000 } = options;
  const running = new Map<string, Run>();
  /** By batch, from before its lease until after its release. */
  const turns = new Map<string, Promise<void>>();
  const closing = new AbortController();
  const now = () => new Date(clock.now());
  let worker: { close(): Promise<void> } | null = null;
  let stopSweeping = () => {};

  const machine = judgeBatchMachine.provide({
    actors: {
      judgeSome: fromPromise<JudgedSome, { batchId: string }>(({ input: { batchId }, signal }) => {
        const { batch } = running.get(batchId)!;
        return judgeSomeOf(batch, { sql, judging, now, logger, signal });
      }),
      end: fromPromise(async ({ input: { batchId, stopReason } }) => {
        const { batch } = running.get(batchId)!;
        await endJudgeBatch(sql, { id: batchId, leaseId: batch.leaseId!, stopReason, now: now() });
      }),
    },
  });

  function takeTurn(batchId: string): Promise<void> {
    const current = turns.get(batchId);
    if (current !== undefined) return current;
    if (closing.signal.aborted || turns.size >= AT_ONCE) return Promise.resolve();
    const turn = run(batchId)
      .catch((error: unknown) => {
        logger.error({ batchId, err: error }, 'judge batch could not be started');
        return false;
      })
      .then(async (isOver) => {
        turns.delete(batchId);
        // Another batch may have waited for this one. A batch that could not be ended waits for the sweeper.
        if (isOver) await look();
      });
    turns.set(batchId, turn);
    return turn;
  }

  async function run(batchId: string): Promise<boolean> {
    const batch = await claimJudgeBatch(sql, { id: batchId, leaseId: randomUUID(), now: now(), leaseMs });
    if (batch === null) return false;
    const over = Promise.withResolvers<void>();
    const actor = createActor(machine, { input: { batchId }, clock });
    const entry: Run = { batch, actor, renewal: null };
    running.set(batchId, entry);
    actor.subscribe({
      complete: over.resolve,
      // A defect, not an outcome: the lease expires and the batch is retried.
      error(error) {
        logger.error({ batchId, err: error }, 'judge batch actor failed');
        over.resolve();
      },
    });
    actor.start();
    if (closing.signal.aborted) actor.send({ type: 'batch.released' });
    renewLater(entry);
    await over.promise;
    clock.clearTimeout(entry.renewal);
    running.delete(batchId);
    return await conclude(entry);
  }

  async function conclude({ batch, actor }: Run): Promise<boolean> {
    const { id: batchId, leaseId } = batch;
    const { output: outcome, context } = actor.getSnapshot();
    if (outcome === 'released') {
      await releaseJudgeBatch(sql, { id: batchId, leaseId: leaseId!, now: now() }).catch((error: unknown) => {
        logger.warn({ batchId, err: error }, 'judge batch could not be released; its lease will expire');
      });
    }
    if (outcome !== 'completed' && outcome !== 'stopped') return false;
    logger.info({ batchId, outcome, stopReason: context.stopReason }, 'judge batch finished');
    return true;
  }

  function renewLater(entry: Run): void {
    entry.renewal = clock.setTimeout(async () => {
      const { batch, actor } = entry;
      const isOurs = await renewJudgeBatch(sql, { id: batch.id, leaseId: batch.leaseId!, now: now(), leaseMs }).catch(
        (error: unknown) => {
          logger.warn({ batchId: batch.id, err: error }, 'judge batch lease could not be renewed');
          return true;
        },
      );
      if (!isOurs) actor.send({ type: 'batch.released' });
      else if (running.get(batch.id) === entry) renewLater(entry);
    }, leaseMs / RENEWALS_PER_LEASE);
  }

  async function look(): Promise<void> {
    if (closing.signal.aborted) return;
    try {
      // Batches leased here are not among them.
      for (const id of await abandonedJudgeBatches(sql, { now: now(), limit: AT_ONCE })) void takeTurn(id);
    } catch (error) {
      logger.error({ err: error }, 'looking for judge batches failed');
    }
  }

  return {
    async start() {
      // The job ends when its batch begins, so that no worker is occupied for an hour.
      worker = await jobs.work(async (batchId) => void takeTurn(batchId), { concurrency: AT_ONCE });
      stopSweeping = tick(() => void look(), { everyMs: sweepIntervalMs, clock });
    },
    async enqueue(batchId) {
      await jobs.add(batchId, { delayMs: 0, attempt: 1 }).catch((error: unknown) => {
        logger.warn({ batchId, err: error }, 'judge batch could not be queued');
      });
    },
    async sweep() {
      await look();
      while (turns.size > 0) await Promise.all(turns.values());
    },
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      stopSweeping();
      for (const { actor } of running.values()) actor.send({ type: 'batch.released' });
      await Promise.all([worker?.close(), ...turns.values()]);
    },
  };
}

interface Run {
  batch: JudgeBatchRow;
  actor: ActorRefFrom<typeof judgeBatchMachine>;
  renewal: unknown;
}
