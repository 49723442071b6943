import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { tick } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { JobQueue, JobWorker } from '../../storage/jobs.ts';
import { lastMemoryCharge } from '../../storage/queries/memory-charges.ts';
import { claimMemory, dueMemories, postponeMemory } from '../../storage/queries/memory-processing.ts';
import type { Logger } from '../logger.ts';
import { type AttemptOutcome, explainedForNow, type MemoryAttempts } from './memory.actor.ts';

/** Processes memories, a few at a time. */
export interface MemoryWorker {
  /** Starts to take jobs and to sweep, beginning with memories of an earlier process. */
  start(): Promise<void>;
  /** Requests attempts now. @throws TandemError `MEMORY_UNREACHABLE` if the queue does not accept them in time */
  enqueue(memoryIds: readonly string[]): Promise<void>;
  /** Attempts every due memory. Resolves when no attempt is running any more. */
  sweep(): Promise<void>;
  /** Stops taking memories, aborts running attempts and releases them for the next process. Idempotent. */
  close(): Promise<void>;
}

export interface MemoryWorkerOptions {
  sql: Sql;
  jobs: JobQueue;
  attempts: MemoryAttempts;
  leaseMs: number;
  clock: Clock;
  logger: Logger;
  /** Concurrent attempts. Default 4. */
  concurrency?: number;
  /** Interval of searches for missed memories. Default 5 000. */
  sweepIntervalMs?: number;
}

/**
 * Processes memories. A row says what is due. A job starts the attempt, or the sweep if the job was lost. A lease on
 * the row gives the attempt to one node. If the process is killed, the lease expires and the attempt is repeated. Each
 * attempt stores its results in one transaction, so nothing is stored twice.
 */
export function createMemoryWorker(options: MemoryWorkerOptions): MemoryWorker {
  const { sql, jobs, attempts, leaseMs, clock, logger } = options;
  const { concurrency = 4, sweepIntervalMs = 5_000 } = options;
  const running = new Map<string, Promise<void>>();
  let worker: JobWorker | null = null;
  let stopSweeping = () => {};
  let looking: Promise<void> | null = null;
  let closing: Promise<void> | null = null;

  /** A job without room simply ends: the sweep after each attempt finds its row. */
  async function handle(memoryId: string): Promise<void> {
    if (!closing && running.size < concurrency) await drive(memoryId);
  }

  function drive(memoryId: string): Promise<void> {
    const before = running.get(memoryId);
    if (before !== undefined) return before;
    const driven = attempt(memoryId).finally(() => {
      running.delete(memoryId);
      if (!closing) void look();
    });
    running.set(memoryId, driven);
    return driven;
  }

  async function attempt(memoryId: string): Promise<void> {
    try {
      const row = await claimMemory(sql, { id: memoryId, now: new Date(clock.now()), leaseMs });
      if (row === null) return;
      // The last charge began a new round of attempts.
      const charged = await lastMemoryCharge(sql, { memoryId, attempts: row.attempts });
      const earlierAttempts = row.attempts - 1 - (charged?.attempts ?? 0);
      const outcome = closing ? null : await attempts.run({ row, earlierAttempts });
      await record({ id: memoryId, attempt: row.attempts }, outcome);
    } catch (error) {
      // The lease expires and the sweep retries.
      logger.error({ memoryId, err: error }, 'memory attempt could not be stored');
    }
  }

  async function record(at: { id: string; attempt: number }, outcome: AttemptOutcome | null): Promise<void> {
    const now = new Date(clock.now());
    const memoryId = at.id;
    if (outcome === null) {
      const interrupted = { code: 'SHUTTING_DOWN', message: 'It goes on when the server is back.', nextAttemptAt: now };
      await postponeMemory(sql, at, { ...interrupted, now });
    } else if (outcome.state === 'waiting') {
      const { fault, backoffMs } = outcome;
      const { code } = fault;
      const nextAttemptAt = new Date(now.getTime() + backoffMs);
      await postponeMemory(sql, at, { code, message: explainedForNow(code), nextAttemptAt, now });
      logger.warn({ memoryId, attempt: at.attempt, code, nextAttemptAt }, 'memory will be retried');
      void schedule(memoryId, { delayMs: backoffMs, attempt: at.attempt + 1 });
    } else logger.info({ memoryId, attempt: at.attempt, state: outcome.state }, 'memory attempt finished');
  }

  async function schedule(memoryId: string, job: { delayMs: number; attempt: number }): Promise<void> {
    try {
      await jobs.add(memoryId, job);
    } catch (error) {
      logger.warn({ memoryId, err: error }, 'memory could not be queued');
    }
  }

  /**
   * Starts due memories while there is room. Concurrent calls share one search, because they would see the same rows.
   */
  function look(): Promise<void> {
    looking ??= findDue()
      .catch((error: unknown) => logger.error({ err: error }, 'looking for due memories failed'))
      .finally(() => {
        looking = null;
      });
    return looking;
  }

  async function findDue(): Promise<void> {
    if (closing || running.size >= concurrency) return;
    // Memories being claimed right now still count as due in the table.
    const due = await dueMemories(sql, { now: new Date(clock.now()), limit: concurrency + running.size });
    const free = due.filter(({ id }) => !running.has(id)).slice(0, concurrency - running.size);
    if (closing) return;
    for (const { id } of free) void drive(id);
  }

  async function shutDown(): Promise<void> {
    stopSweeping();
    attempts.abortAll();
    await looking;
    attempts.abortAll();
    await Promise.all(running.values());
    await worker?.close();
  }

  return {
    async start() {
      worker = await jobs.work(handle, { concurrency });
      stopSweeping = tick(() => void look(), { everyMs: sweepIntervalMs, clock });
    },

    async enqueue(memoryIds) {
      try {
        await Promise.all(memoryIds.map((id) => jobs.add(id, { delayMs: 0, attempt: 1 })));
      } catch (cause) {
        throw new TandemError('MEMORY_UNREACHABLE', 'The memory queue does not respond.', { cause });
      }
    },

    async sweep() {
      // A search that began earlier may have missed what is due now.
      await looking;
      await look();
      // Each attempt that ends makes room and searches again.
      while (running.size > 0 || looking !== null) {
        await Promise.all(running.values());
        await looking;
      }
    },

    close() {
      closing ??= shutDown();
      return closing;
    },
  };
}
