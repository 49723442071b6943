import { createActor, fromPromise } from 'xstate';
import { type MemoryFault, memoryBackoffMs, memoryMachine } from '../../machines/memory.machine.ts';
import type { Clock } from '../../runtime/clock.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { lockAccounts } from '../../storage/ledger-entries.ts';
import type { MemoryRow, MemoryStage } from '../../storage/queries/memories.ts';
import { failMemory, setMemoryStage } from '../../storage/queries/memory-processing.ts';
import type { Logger } from '../logger.ts';
import { refundMemory } from './memory-account.ts';
import type { MemoryPipeline } from './memory-pipeline.ts';

/** Outcome of one attempt. `lost`: the memory was deleted, or another attempt has it. */
export type AttemptOutcome =
  | { state: 'ready' | 'failed' | 'lost' }
  /** Another attempt follows after `backoffMs`. */
  | { state: 'waiting'; fault: MemoryFault; backoffMs: number };

export interface MemoryAttempts {
  /** Runs one attempt of a leased memory. Null: it was aborted. */
  run(claimed: ClaimedMemory): Promise<AttemptOutcome | null>;
  /** Stops the attempt in progress; with `before`, only if its number is lower. */
  drop(memoryId: string, before?: number): void;
  abortAll(): void;
}

export interface ClaimedMemory {
  row: MemoryRow;
  /** Earlier attempts since the charge. */
  earlierAttempts: number;
}

export interface MemoryAttemptsOptions {
  sql: Sql;
  createPipeline: (memory: MemoryRow) => MemoryPipeline;
  /** Others may take the memory if the lease is not renewed for this long. */
  leaseMs: number;
  clock: Clock;
  logger: Logger;
}

interface LiveAttempt {
  row: MemoryRow;
  pipeline: MemoryPipeline;
  stage: MemoryStage;
  end: (outcome: AttemptOutcome | null) => void;
}

export function createMemoryAttempts(options: MemoryAttemptsOptions): MemoryAttempts {
  const { sql, leaseMs, clock, logger } = options;
  const live = new Map<string, LiveAttempt>();
  const machine = memoryMachine.provide({
    actors: {
      extract: stagePort('extracting', (pipeline, signal) => pipeline.extract(signal)),
      chunk: stagePort('chunking', (pipeline, signal) => pipeline.chunk(signal)),
      embed: stagePort('embedding', (pipeline, signal) => pipeline.embed(signal)),
      index: stagePort('indexing', async (pipeline, _signal, attempt) => {
        if (!(await pipeline.index())) attempt.end({ state: 'lost' });
      }),
      giveUp: fromPromise(async ({ input: { memoryId, error } }) => {
        const attempt = live.get(memoryId)!;
        if (!(await giveUp(attempt.row, error))) attempt.end({ state: 'lost' });
      }),
    },
  });

  function stagePort(
    stage: MemoryStage,
    work: (pipeline: MemoryPipeline, signal: AbortSignal, attempt: LiveAttempt) => Promise<void>,
  ) {
    return fromPromise<void, { memoryId: string }>(async ({ input: { memoryId }, signal }) => {
      const attempt = live.get(memoryId)!;
      attempt.stage = stage;
      if (!(await renew(attempt))) {
        attempt.end({ state: 'lost' });
        return;
      }
      try {
        await work(attempt.pipeline, signal, attempt);
      } catch (error) {
        if (!signal.aborted) logger.warn({ memoryId, stage, err: error }, 'memory processing failed');
        throw error;
      }
    });
  }

  async function renew({ row, stage }: LiveAttempt): Promise<boolean> {
    const attempt = { id: row.id, attempt: row.attempts };
    return await setMemoryStage(sql, attempt, { stage, now: new Date(clock.now()), leaseMs });
  }

  async function giveUp(row: MemoryRow, { code }: MemoryFault): Promise<boolean> {
    const now = new Date(clock.now());
    const { id, attempts, workspaceId } = row;
    return await inTransaction(sql, async (tx) => {
      await lockAccounts(tx, workspaceId);
      const failed = await failMemory(tx, { id, attempt: attempts }, { code, message: explained(code), now });
      if (failed === null) return false;
      await refundMemory(tx, { memoryId: id, attempts, workspaceId, now });
      return true;
    }).catch((error: unknown) => {
      logger.warn({ memoryId: id, err: error }, 'memory failure could not be stored');
      throw error;
    });
  }

  return {
    async run({ row, earlierAttempts }) {
      const memoryId = row.id;
      const { promise, resolve, reject } = Promise.withResolvers<AttemptOutcome | null>();
      const attempt: LiveAttempt = {
        row,
        pipeline: options.createPipeline(row),
        stage: 'extracting',
        end: resolve,
      };
      live.set(memoryId, attempt);
      const actor = createActor(machine, { input: { memoryId, attempts: earlierAttempts }, clock });
      actor.subscribe({
        next(snapshot) {
          const { fault, attempts } = snapshot.context;
          if (snapshot.matches('ready')) resolve({ state: 'ready' });
          else if (snapshot.matches('failed')) resolve({ state: 'failed' });
          else if (snapshot.matches('waiting') && fault !== null) {
            resolve({ state: 'waiting', fault, backoffMs: memoryBackoffMs(attempts) });
          }
        },
        error: reject,
      });
      const renewal = startRenewing(attempt);
      try {
        actor.start();
        actor.send({ type: 'memory.due' });
        return await promise;
      } finally {
        renewal.stop();
        live.delete(memoryId);
        // Stopping aborts the stage in progress and any waiting timer.
        actor.stop();
      }
    },

    drop(memoryId, before = Number.POSITIVE_INFINITY) {
      const attempt = live.get(memoryId);
      if (attempt !== undefined && attempt.row.attempts < before) attempt.end({ state: 'lost' });
    },

    abortAll() {
      for (const { end } of live.values()) end(null);
    },
  };

  /** Renews the lease, because a stage may take longer. */
  function startRenewing(attempt: LiveAttempt): { stop(): void } {
    let timer: unknown = null;
    const renewLater = () => {
      timer = clock.setTimeout(() => {
        renewLater();
        renew(attempt)
          .then((isHeld) => isHeld || attempt.end({ state: 'lost' }))
          // The next renewal may succeed. If none does, the lease expires and every step notices.
          .catch((error: unknown) => logger.warn({ memoryId: attempt.row.id, err: error }, 'lease not renewed'));
      }, leaseMs / 3);
    };
    renewLater();
    return { stop: () => clock.clearTimeout(timer) };
  }
}

/** Explains a failure to users, with advice. */
function explained(code: string): string {
  return `${reasonOf(code)} The charge was refunded. ${code === UNREACHABLE ? 'Retry when it does' : 'Retry the memory'}.`;
}

export function explainedForNow(code: string): string {
  return `${reasonOf(code)} It will be retried automatically.`;
}

function reasonOf(code: string): string {
  if (code === UNREACHABLE) return 'The embeddings server does not respond correctly.';
  return 'Processing failed for an internal reason, not because of the text.';
}

const UNREACHABLE = 'MEMORY_UNREACHABLE';
