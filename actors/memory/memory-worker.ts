import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { JobQueue, JobWorker } from '../../storage/jobs.ts';
import { lastMemoryCharge } from '../../storage/queries/memory-charges.ts';
import { claimMemory, dueMemories, postponeMemory } from '../../storage/queries/memory-processing.ts';
import type { Logger } from '../logger.ts';
import { type AttemptOutcome, explainedForNow, type MemoryAttempts } from './memory.actor.ts';

/** Processes memories from their rows, a few at a time. */
export interface MemoryWorker {
  /** Begins to take jobs and to sweep, at once for what an earlier process left. */
  start(): Promise<void>;
  /** Asks for attempts now. @throws TandemError `MEMORY_UNREACHABLE` when the queue does not take them in time */
  enqueue(memoryIds: readonly string[]): Promise<void>;
  /** Attempts every due memory, and resolves when no attempt is under way, whoever began it. */
  sweep(): Promise<void>;
  /** Takes no more, aborts what is under way, and gives it back for whoever starts next. Idempotent. */
  close(): Promise<void>;
}

export interface MemoryWorkerOptions {
  sql: Sql;
  jobs: JobQueue;
  attempts: MemoryAttempts;
  leaseMs: number;
  clock: Clock;
  logger: Logger;
  /** Attempts at once. Default 4. */
  concurrency?: number;
  /** How often forgotten memories are looked for. Default 5 000. */
  sweepIntervalMs?: number;
  /** How long the queue may take. Default 2 000. */
  queueWithinMs?: number;
}

/**
 * A row says what is due; a job, or the sweep when the job was lost, says when to look; a lease on the row makes the
 * attempt one node's. Killed at any point, it leaves a row whose lease runs out and that is attempted again; what an
 * attempt stores is one transaction, so nothing is there twice.
 */
export function createMemoryWorker(options: MemoryWorkerOptions): MemoryWorker {
  const { sql, jobs, attempts, leaseMs, clock, logger } = options;
  const { concurrency = 4, sweepIntervalMs = 5_000, queueWithinMs = 2_000 } = options;
  const running = new Map<string, Promise<void>>();
  let worker: JobWorker | null = null;
  let sweepTimer: unknown = null;
  let looking: Promise<void> | null = null;
  let closing: Promise<void> | null = null;

  /** A job that finds no room is over: the sweep that follows each attempt finds its row. */
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
      // What was charged last began a new round of attempts, of which this is one.
      const charged = await lastMemoryCharge(sql, { memoryId, attempts: row.attempts });
      const earlierAttempts = row.attempts - 1 - (charged?.attempts ?? 0);
      const outcome = closing ? null : await attempts.run({ row, earlierAttempts });
      await record({ id: memoryId, attempt: row.attempts }, outcome);
    } catch (error) {
      // The lease runs out and the sweep tries again.
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

  /** Starts what is due and there is room for. Two looks at once would see the same rows. */
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
    // Those that are claimed this very moment are due in the table still.
    const due = await dueMemories(sql, { now: new Date(clock.now()), limit: concurrency + running.size });
    const free = due.filter(({ id }) => !running.has(id)).slice(0, concurrency - running.size);
    if (closing) return;
    for (const { id } of free) void drive(id);
  }

  function sweepAfter(delayMs: number): void {
    sweepTimer = clock.setTimeout(() => {
      sweepAfter(sweepIntervalMs);
      void look();
    }, delayMs);
  }

  async function shutDown(): Promise<void> {
    if (sweepTimer !== null) clock.clearTimeout(sweepTimer);
    attempts.abortAll();
    await looking;
    attempts.abortAll();
    await Promise.all(running.values());
    await worker?.close();
  }

  return {
    async start() {
      worker = await jobs.work(handle, { concurrency });
      sweepAfter(0);
    },

    async enqueue(memoryIds) {
      try {
        const queued = Promise.all(memoryIds.map((id) => jobs.add(id, { delayMs: 0, attempt: 1 })));
        // A queue on Redis waits for its server for ever.
        const outcome = await within(queued, { ms: queueWithinMs, clock });
        if (outcome === LATE) throw new Error('the queue does not answer');
      } catch (cause) {
        throw new TandemError('MEMORY_UNREACHABLE', 'The memory queue does not respond.', { cause });
      }
    },

    async sweep() {
      // A look that began earlier may have missed what is due by now.
      await looking;
      await look();
      // Each attempt that ends makes room and looks again.
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
