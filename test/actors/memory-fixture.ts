import { createMemoryAttempts } from '../../actors/memory/memory.actor.ts';
import { createMemoryDesk } from '../../actors/memory/memory-desk.actor.ts';
import type { MemoryCaller, MemoryDesk, NewMemoryText } from '../../actors/memory/memory-desk.ts';
import { createPipeline } from '../../actors/memory/memory-pipeline.ts';
import { createMemoryWorker, type MemoryWorker } from '../../actors/memory/memory-worker.ts';
import type { Embedder } from '../../language/memory/embedder.ts';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import type { Role } from '../../storage/queries/workspaces.ts';
import { FakeLanguageModels } from '../language/fake-language-models.ts';
import { NOW, seedWorkspace } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { createTestLogger } from './fakes.ts';
import { MemoryQueue } from './memory-queue.ts';

/** A counting embedder that the test can switch off. */
export class FakeEmbedder implements Embedder {
  readonly name = 'fake-1';
  readonly dimensions = 2;
  readonly batchSize = 4;
  readonly typicalCosine = 0.1;
  readonly leastEvidence = 0.05;
  isAway = false;
  readonly batches: (readonly string[])[] = [];
  onEmbed: () => Promise<void> = async () => {};

  /** Lets embeddings wait for `release`. `reached` resolves when the first one waits. */
  stall(): { reached: Promise<void>; release: () => void } {
    const reached = Promise.withResolvers<void>();
    const stuck = Promise.withResolvers<void>();
    this.onEmbed = () => {
      reached.resolve();
      return stuck.promise;
    };
    return { reached: reached.promise, release: stuck.resolve };
  }

  async embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    this.batches.push(texts);
    await this.onEmbed();
    signal.throwIfAborted();
    if (this.isAway) throw new TandemError('MEMORY_UNREACHABLE', 'The server at 10.0.0.1 is away.');
    return texts.map(() => Float32Array.of(0.6, 0.8));
  }
}

export interface MemoryFixture extends AsyncDisposable {
  sql: Sql;
  desk: MemoryDesk;
  worker: MemoryWorker;
  queue: MemoryQueue;
  embedder: FakeEmbedder;
  models: FakeLanguageModels;
  /** Controlled by the test; timers fire at once when it passes them. */
  time: { ms: number };
  owner: MemoryCaller;
  as(role: Role): MemoryCaller;
  balance(): Promise<bigint>;
  unitsOf(memoryId: string): Promise<{ kind: string; text: string; embedder: string | null }[]>;
  /** Advances the time and attempts everything due. */
  pass(ms: number): Promise<void>;
  /** Another node or the next start: a separate worker on the same rows. */
  anotherWorker(): Promise<MemoryWorker>;
}

export const LEASE_MS = 30_000;

/** The desk and a worker on a separate database; the test controls sweeps and time. */
export async function createMemoryFixture({
  balanceNano,
  extractWithinMs,
}: {
  balanceNano?: bigint;
  extractWithinMs?: number;
} = {}): Promise<MemoryFixture> {
  const database = await createTestDatabase();
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql, balanceNano === undefined ? {} : { balanceNano });
  const time = { ms: NOW.getTime() };
  const clock: Clock = {
    now: () => time.ms,
    monotonicMs: () => time.ms,
    // The test runs sweeps itself.
    setTimeout: () => null,
    clearTimeout: () => {},
  };
  const embedder = new FakeEmbedder();
  const models = new FakeLanguageModels();
  models.models = [];
  const queue = new MemoryQueue();
  queue.state = 'lost';
  const logger = createTestLogger();
  const countTokens = (text: string) => Math.ceil(text.length / 4);
  const workers: MemoryWorker[] = [];
  const drops: ((id: string, before?: number) => void)[] = [];

  async function anotherWorker(): Promise<MemoryWorker> {
    const attempts = createMemoryAttempts({
      sql,
      createPipeline: (memory) =>
        createPipeline(memory, {
          sql,
          models,
          embedder,
          countTokens,
          now: () => new Date(time.ms),
          logger,
          ...(extractWithinMs !== undefined && { extractWithinMs }),
        }),
      leaseMs: LEASE_MS,
      clock,
      logger,
    });
    const jobs = await queue.open();
    const worker = createMemoryWorker({ sql, jobs, attempts, leaseMs: LEASE_MS, clock, logger });
    drops.push((id, before) => attempts.drop(id, before));
    workers.push(worker);
    await worker.start();
    return worker;
  }

  const worker = await anotherWorker();
  const owner: MemoryCaller = {
    workspaceId: workspace.id,
    userId: user.id,
    apiKeyId: null,
    role: 'owner',
    requestId: 'request-1',
  };
  const recall = {
    search: () => Promise.reject(new Error('not of this test')),
    context: () => Promise.reject(new Error('not of this test')),
  };
  const desk = createMemoryDesk({
    sql,
    recall,
    worker: () => worker,
    drop: (ids, before) => {
      for (const id of ids) for (const drop of drops) drop(id, before);
    },
    isClosed: () => false,
    clock,
    logger,
  });
  return {
    sql,
    desk,
    worker,
    queue,
    embedder,
    models,
    time,
    owner,
    anotherWorker,
    as: (role) => ({ ...owner, role }),
    balance: async () => (await walletOf(sql, workspace.id)).availableNano,
    unitsOf: async (memoryId) =>
      await sql`select kind, text, embedder from memory_units where memory_id = ${memoryId} order by kind, position`,
    async pass(ms) {
      time.ms += ms;
      await worker.sweep();
    },
    async [Symbol.asyncDispose]() {
      for (const each of workers) await each.close();
      await database.drop();
    },
  };
}

export function textOf(text: string, more: Partial<NewMemoryText> = {}): NewMemoryText {
  return { text, title: null, type: null, collectionId: null, infer: true, metadata: {}, ...more };
}
