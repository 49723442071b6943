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

/** What came of one attempt; `lost`: it is deleted, or somebody else's by now. */
export type AttemptOutcome =
  | { state: 'ready' | 'failed' | 'lost' }
  /** Another attempt is due after that time. */
  | { state: 'waiting'; fault: MemoryFault; backoffMs: number };

export interface MemoryAttempts {
  /** Runs one attempt of a memory whose lease is held. Null: it was aborted. */
  run(claimed: ClaimedMemory): Promise<AttemptOutcome | null>;
  /** Stops the attempt in progress if its number is less than `before`. Default: whatever its number. */
  drop(memoryId: string, before?: number): void;
  abortAll(): void;
}

export interface ClaimedMemory {
  row: MemoryRow;
  /** That were made before this one, since it was charged for. */
  earlierAttempts: number;
}

export interface MemoryAttemptsOptions {
  sql: Sql;
  createPipeline: (memory: MemoryRow) => MemoryPipeline;
  /** Others may take it when nothing is heard for so long. */
  leaseMs: number;
  clock: Clock;
  logger: Logger;
}

interface LiveAttempt {
  row: MemoryRow;
  pipeline: MemoryPipeline;
  stage: MemoryStage;
  /** Ends it without an outcome of its own. */
  end: (outcome: AttemptOutcome | null) => void;
}

/** Gives the memory machine its ports, once. */
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
      const beat = startBeating(attempt);
      try {
        actor.start();
        actor.send({ type: 'memory.due' });
        return await promise;
      } finally {
        beat.stop();
        live.delete(memoryId);
        // Stopping aborts the stage that is under way, and the timer of a wait.
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

  /** A stage may take longer than a lease. */
  function startBeating(attempt: LiveAttempt): { stop(): void } {
    let timer: unknown = null;
    const beatLater = () => {
      timer = clock.setTimeout(() => {
        beatLater();
        renew(attempt)
          .then((isHeld) => isHeld || attempt.end({ state: 'lost' }))
          // The next beat may succeed; if none does, the lease runs out and every step finds that out.
          .catch((error: unknown) => logger.warn({ memoryId: attempt.row.id, err: error }, 'lease not renewed'));
      }, leaseMs / 3);
    };
    beatLater();
    return { stop: () => clock.clearTimeout(timer) };
  }
}

/** For a person: why it failed, and what to do. */
function explained(code: string): string {
  return `${reasonOf(code)} The charge was refunded. ${code === UNREACHABLE ? 'Retry when it does' : 'Retry the memory'}.`;
}

/** For a person, of an attempt after which there is another. */
export function explainedForNow(code: string): string {
  return `${reasonOf(code)} It will be retried automatically.`;
}

function reasonOf(code: string): string {
  if (code === UNREACHABLE) return 'The embeddings server does not respond correctly.';
  return 'Processing failed for an internal reason, not because of the text.';
}

const UNREACHABLE = 'MEMORY_UNREACHABLE';
