import { assembleContext, queryFromMessages } from '../../language/memory/context.ts';
import type { Recall, Recalled } from '../../language/memory/recall.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { MemoryViewer } from '../../storage/queries/memory-collections.ts';
import {
  conditionsOfEntities,
  type MetadataCondition,
  parseMetadataFilter,
} from '../../storage/queries/memory-filter.ts';
import type { FoundUnit } from '../../storage/queries/memory-search.ts';
import type { Found, FoundMemory, MemoryDesk, SearchRequest } from './memory-desk.ts';
import { charactersOf } from './memory-ingest.ts';
import { createTextCharges } from './text-charges.ts';

export interface MemoryRecallOptions {
  sql: Sql;
  recall: Recall<MemoryViewer, MetadataCondition, FoundUnit>;
  countTokens: CountTokens;
  clock: Clock;
}

/** Memories of a context; more exceed most budgets. */
const MOST_RECALLED = 40;
/** Only the end of a long conversation is the query. */
const LONGEST_QUERY = 2_000;

/**
 * Searches first and charges afterwards, so failed or keyword-only searches are free. Rejects callers who cannot pay.
 */
export function createMemoryRecall(options: MemoryRecallOptions): Pick<MemoryDesk, 'search' | 'context'> {
  const { recall, countTokens } = options;
  const { affordable, pay } = createTextCharges(options);

  async function recalled(
    request: SearchRequest,
    { operation, signal }: { operation: 'search' | 'context'; signal: AbortSignal },
  ): Promise<Found> {
    const { by, query, limit, type, collectionIds, filters, entities, threshold } = request;
    const conditions = [...conditionsOfEntities(entities), ...parseMetadataFilter(filters ?? {})];
    const cost = await affordable(by, charactersOf(query));
    const found = await recall({
      viewer: by,
      query,
      conditions,
      limit,
      collectionIds: collectionIds ?? undefined,
      type: type ?? undefined,
      threshold: threshold ?? undefined,
      isPlain: operation === 'context',
      // A client that sets a minimum score decides itself what is relevant.
      isRelevantOnly: operation === 'context' && threshold === null,
      signal,
    });
    return {
      hits: found.results.map(hitOf),
      total: found.total,
      tookMs: found.timingMs,
      isDegraded: found.degraded,
      charge: found.degraded ? null : await pay(by, { operation, cost }),
    };
  }

  return {
    search: (request, signal) => recalled(request, { operation: 'search', signal }),

    async context({ maxTokens, asked, ...request }, signal) {
      const query = 'query' in asked ? asked.query : queryFromMessages(asked.messages, LONGEST_QUERY);
      if (query === '') throw emptyQuery();
      const found = await recalled({ ...request, query, limit: MOST_RECALLED }, { operation: 'context', signal });
      const texts = found.hits.map(({ memoryId: id, title, text, score }) => ({ id, title, text, score }));
      const { text, tokens, sources } = assembleContext(texts, { maxTokens, countTokens });
      return { text, tokens, sources, isDegraded: found.isDegraded, charge: found.charge };
    },
  };
}

function hitOf(found: Recalled<FoundUnit>): FoundMemory {
  const { memoryId, text, title, score, scores, collectionId, type, metadata, createdAt } = found;
  return { memoryId, text, title, score, scores, collectionId, type, metadata, createdAt };
}

function emptyQuery(): TandemError {
  const message = 'must have a text of the user or the assistant';
  return new TandemError('VALIDATION_FAILED', `messages ${message}.`, { details: [{ path: 'messages', message }] });
}
