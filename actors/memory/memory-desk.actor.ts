import type { ReadDocument } from '../../language/documents/document-reader.ts';
import { shuttingDown, TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import type { Logger } from '../logger.ts';
import { documentParts } from './document-parts.ts';
import { requireMayStore } from './memory-access.ts';
import { refundMemory, totalOf } from './memory-account.ts';
import type { Ingested, MemoryCaller, MemoryDesk } from './memory-desk.ts';
import { type StoreRequest, storeTexts } from './memory-ingest.ts';
import { createMemoryLibrary } from './memory-library.ts';
import { updateMemory } from './memory-update.ts';
import type { MemoryWorker } from './memory-worker.ts';

export interface MemoryDeskOptions {
  sql: Sql;
  recall: Pick<MemoryDesk, 'search' | 'context'>;
  /** Null: not open yet, so nothing can be ingested or searched. */
  worker: () => Pick<MemoryWorker, 'enqueue'> | null;
  /** Stops attempts in progress for deleted or changed memories; with `before`, only those with a lower number. */
  drop: (memoryIds: readonly string[], before?: number) => void;
  isClosed: () => boolean;
  clock: Clock;
  logger: Logger;
}

interface ChargedMemories {
  ids: readonly string[];
  /** Attempts made before the charge. */
  attempts: number;
  by: MemoryCaller;
}

/** In seconds, as specified. */
const PROVISIONING_RETRY_S = 10;
const QUEUE_RETRY_S = 5;

export function createMemoryDesk(options: MemoryDeskOptions): MemoryDesk {
  const { sql, recall, drop, isClosed, clock, logger } = options;
  const library = createMemoryLibrary({
    sql,
    clock,
    drop,
    async revive(memoryIds) {
      // A sweep finds those that could not be queued.
      if (memoryIds.length > 0)
        await options
          .worker()
          ?.enqueue(memoryIds)
          .catch(() => {});
    },
  });
  const now = () => new Date(clock.now());

  return {
    ...library,

    async ingest({ memories, by }) {
      const texts = memories.map((memory) => ({ ...memory, source: null }));
      return await stored({ texts, operation: memories.length > 1 ? 'ingest_batch' : 'ingest', by, now: now() });
    },

    async requireMayStore(request) {
      requireReady();
      await inTransaction(sql, (tx) => requireMayStore(tx, request));
    },

    async ingestDocument({ document, fileName, by, title, ...rest }) {
      const parts = documentParts(document.sections);
      const whole = title ?? document.title ?? fileName;
      const texts = parts.map((text, index) => {
        const numbered = `${whole ?? 'Document'} (${index + 1} of ${parts.length})`;
        const source = { ...sourceOf(document, fileName), part: index + 1, parts: parts.length };
        return { ...rest, text, source, title: parts.length === 1 ? whole : numbered };
      });
      return await stored({ texts, operation: 'ingest_document', by, now: now() });
    },

    async search(request, signal) {
      requireReady();
      return await recall.search(request, signal);
    },

    async context(request, signal) {
      requireReady();
      return await recall.context(request, signal);
    },

    async retry(key) {
      const worker = requireReady();
      const retried = await library.retry(key);
      await queued(worker, { ids: [key.memoryId], attempts: retried.memory.attempts, by: key.by });
      return retried;
    },

    async update(update) {
      const worker = requireReady();
      const { memoryId, by } = update;
      const rewritten = await updateMemory(sql, { ...update, now: now() });
      if (rewritten !== null) {
        const { attempts } = rewritten;
        drop([memoryId], attempts);
        await queued(worker, { ids: [memoryId], attempts, by });
      }
      return { memory: await library.get({ memoryId, by }), charge: totalOf(rewritten ? [rewritten.charge] : []) };
    },
  };

  async function stored(request: StoreRequest): Promise<Ingested> {
    const worker = requireReady();
    const ingested = await storeTexts(sql, request);
    const ids = ingested.results.flatMap((result) => (result.outcome === 'queued' ? [result.id] : []));
    if (ids.length > 0) await queued(worker, { ids, attempts: 0, by: request.by });
    return ingested;
  }

  /** @throws TandemError `MEMORY_UNREACHABLE`, after the refund */
  async function queued(worker: Pick<MemoryWorker, 'enqueue'>, charged: ChargedMemories): Promise<void> {
    const { ids } = charged;
    try {
      await worker.enqueue(ids);
    } catch (cause) {
      logger.warn({ memories: ids.length, err: cause }, 'memories could not be queued');
      try {
        await refund(charged);
      } catch (error) {
        // They are charged and stored, and the next sweep processes them: so the request succeeded.
        logger.error({ memories: ids.length, err: error }, 'memories could be neither queued nor refunded');
        return;
      }
      throw new TandemError('MEMORY_UNREACHABLE', UNREACHABLE, {
        cause,
        retryAfterS: QUEUE_RETRY_S,
        details: { ids: [...ids] },
      });
    }
  }

  async function refund({ ids, attempts, by: { workspaceId } }: ChargedMemories): Promise<void> {
    await inTransaction(sql, async (tx) => {
      for (const memoryId of ids) await refundMemory(tx, { memoryId, attempts, workspaceId, now: now() });
    });
  }

  function requireReady(): Pick<MemoryWorker, 'enqueue'> {
    if (isClosed()) throw shuttingDown();
    const worker = options.worker();
    if (worker !== null) return worker;
    throw new TandemError('MEMORY_INFRA_NOT_READY', 'Memory is starting. Try again in about 10 seconds.', {
      retryAfterS: PROVISIONING_RETRY_S,
    });
  }
}

const UNREACHABLE = 'Processing cannot start now. The memories are stored and queued; the charge was refunded.';

function sourceOf({ format, pageCount, isOcr, warnings }: ReadDocument, fileName: string | null) {
  return { file_name: fileName, format, pages: pageCount, ocr: isOcr, warnings: [...warnings] };
}
