import type { LanguageModels } from '../../language/llm.ts';
import type { Embedder } from '../../language/memory/embedder.ts';
import { createOfflineEmbedder } from '../../language/memory/embedder-offline.ts';
import { createOpenAiEmbedder } from '../../language/memory/embedder-openai.ts';
import { createRecall } from '../../language/memory/recall.ts';
import { countTokens } from '../../language/tokens.ts';
import type { Clock } from '../../runtime/clock.ts';
import { pause, within } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { Jobs } from '../../storage/jobs.ts';
import type { Logger } from '../logger.ts';
import { createMemoryAttempts } from './memory.actor.ts';
import { createMemoryDesk } from './memory-desk.actor.ts';
import type { MemoryDesk } from './memory-desk.ts';
import { createPipeline } from './memory-pipeline.ts';
import { createMemoryRecall } from './memory-recall.ts';
import { createMemoryWorker, type MemoryWorker } from './memory-worker.ts';
import { keepMakingPoints } from './missing-points.ts';
import { type MemoryIndexChoice, openVectorIndex } from './open-vector-index.ts';
import { createRecallStore } from './recall-store.ts';
import { createTextEmbedding } from './text-embedding.actor.ts';
import type { TextEmbedding } from './text-embedding.ts';

export interface OpenMemoryOptions {
  sql: Sql;
  jobs: Pick<Jobs, 'open'>;
  models: Pick<LanguageModels, 'complete'>;
  /** Settings of the embeddings server. Without one, this process embeds with built-in word vectors. */
  embeddings: EmbeddingSettings;
  /** Search index for points. Default `exact`. */
  index?: MemoryIndexChoice;
  clock: Clock;
  logger: Logger;
  /** Default 15 000. */
  leaseMs?: number;
  /** Timeout of a search by words or by meaning. Default 3 000 ms. */
  searchTimeoutMs?: number;
}

/** As in `settings.ts`. */
export interface EmbeddingSettings {
  embeddingsBaseUrl: string | null;
  embeddingsApiKey: string | null;
  embeddingsModel: string | null;
}

export interface OpenMemory extends MemoryDesk, TextEmbedding {
  /** Resolves once memories are processed, or after `withinMs`; opening continues in the background. */
  ready(options: { withinMs: number }): Promise<void>;
  close(): Promise<void>;
}

/** Longest delay of a memory in processing after a kill -9. */
const LEASE_MS = 15_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const CLOSE_WITHIN_MS = 2_000;

/** Opens memory at once. Until its queue is open, requests fail with `MEMORY_INFRA_NOT_READY`. */
export function openMemory(options: OpenMemoryOptions): OpenMemory {
  const { sql, jobs, models, clock, logger, leaseMs = LEASE_MS } = options;
  const embedder = embedderOf(options.embeddings);
  const index = openVectorIndex({ sql, embedder: embedder.name, choice: options.index ?? 'exact', logger });
  const timeoutMs = options.searchTimeoutMs;
  const recall = createRecall({ store: createRecallStore(sql), embedder, index, timeoutMs, logger });
  const now = () => new Date(clock.now());
  const attempts = createMemoryAttempts({
    sql,
    createPipeline: (memory) => createPipeline(memory, { sql, models, embedder, countTokens, now, logger }),
    leaseMs,
    clock,
    logger,
  });
  const closing = new AbortController();
  const missingPoints = keepMakingPoints({ sql, embedder, logger, clock });
  let worker: MemoryWorker | null = null;
  const starting = start();

  async function start(): Promise<void> {
    for (let waitMs = FIRST_WAIT_MS; !closing.signal.aborted; waitMs = Math.min(LONGEST_WAIT_MS, 2 * waitMs)) {
      try {
        const started = createMemoryWorker({
          sql,
          jobs: await jobs.open('memories'),
          attempts,
          leaseMs,
          clock,
          logger,
        });
        if (closing.signal.aborted) return;
        await started.start();
        worker = started;
        if (closing.signal.aborted) await started.close();
        return;
      } catch (error) {
        logger.warn({ err: error, waitMs }, 'memory queue not ready yet; retrying');
        await pause(waitMs, { clock, signal: closing.signal }).catch(() => {});
      }
    }
  }

  async function startedWithin(withinMs: number): Promise<void> {
    await within(starting, { ms: withinMs, clock });
  }

  return {
    ...createMemoryDesk({
      sql,
      recall: createMemoryRecall({ sql, recall, countTokens, clock }),
      worker: () => worker,
      drop: (memoryIds, before) => {
        for (const memoryId of memoryIds) attempts.drop(memoryId, before);
      },
      isClosed: () => closing.signal.aborted,
      clock,
      logger,
    }),

    ...createTextEmbedding({ sql, embedder, countTokens, clock, isClosed: () => closing.signal.aborted }),

    ready: ({ withinMs }) => startedWithin(withinMs),

    async close() {
      closing.abort();
      // The queue's server may never respond.
      await startedWithin(CLOSE_WITHIN_MS);
      await worker?.close();
      await missingPoints.close();
      await index.close();
    },
  };
}

/** Servers with a single model accept any name. */
const DEFAULT_MODEL = 'text-embedding-3-small';

function embedderOf({
  embeddingsBaseUrl: baseUrl,
  embeddingsApiKey: apiKey,
  embeddingsModel,
}: EmbeddingSettings): Embedder {
  if (baseUrl === null) return createOfflineEmbedder();
  return createOpenAiEmbedder({ baseUrl, apiKey, model: embeddingsModel ?? DEFAULT_MODEL });
}
