import { randomUUID } from 'node:crypto';
import { assembleContext } from '../../language/memory/context.ts';
import type { CountTokens } from '../../language/tokens.ts';
import type { Sql } from '../../storage/database.ts';
import { charge, insufficientCredits, walletOf } from '../../storage/ledger.ts';
import { type Cost, costOf, priceBookOf } from '../../storage/price-book.ts';
import { findMemoryCollection } from '../../storage/queries/memory-collections.ts';
import type { Clock } from '../clock.ts';
import { collectionNotFound } from './memory-access.ts';
import { totalOf } from './memory-account.ts';
import type { Found, FoundMemory, MemoryCaller, MemoryCharge, MemoryDesk, SearchRequest } from './memory-desk.ts';
import { charactersOf } from './memory-ingest.ts';

/** Looks for memories among those that the caller may see, the best first. */
export type FindMemories = (
  request: Omit<SearchRequest, 'collectionIds'> & { collectionIds: readonly string[] | null },
  signal: AbortSignal,
) => Promise<{ hits: FoundMemory[]; isDegraded: boolean }>;

export interface MemoryRecallOptions {
  sql: Sql;
  find: FindMemories;
  countTokens: CountTokens;
  clock: Clock;
}

/** Of a context: more would not fit into most budgets. */
const MOST_RECALLED = 40;

/**
 * Asked first and paid for afterwards, so that nothing is owed for what fails or was found by words alone; but who
 * could not pay is not answered.
 */
export function createMemoryRecall(options: MemoryRecallOptions): Pick<MemoryDesk, 'search' | 'context'> {
  const { sql, find, countTokens, clock } = options;

  async function recalled(
    request: SearchRequest,
    { operation, signal }: { operation: 'search' | 'context'; signal: AbortSignal },
  ): Promise<Found> {
    const startedAt = performance.now();
    const { by, query, collectionIds } = request;
    for (const id of collectionIds ?? []) {
      if ((await findMemoryCollection(sql, by, id)) === null) throw collectionNotFound();
    }
    const cost = await affordable(by, query);
    const { hits, isDegraded } = await find(request, signal);
    signal.throwIfAborted();
    const tookMs = performance.now() - startedAt;
    return { hits, isDegraded, tookMs, charge: isDegraded ? null : await pay(by, { operation, cost }) };
  }

  async function affordable({ workspaceId }: MemoryCaller, query: string): Promise<Cost> {
    const cost = costOf(await priceBookOf(sql, workspaceId), { service: 'memory', count: charactersOf(query) });
    const { availableNano } = await walletOf(sql, workspaceId);
    if (availableNano < cost.amountNano) throw insufficientCredits(cost.amountNano, availableNano);
    return cost;
  }

  async function pay(
    { workspaceId, userId, apiKeyId }: MemoryCaller,
    { operation, cost }: { operation: string; cost: Cost },
  ): Promise<MemoryCharge> {
    const id = randomUUID();
    const by = { workspaceId, userId, apiKeyId };
    const operationKey = `memory_${operation}:${id}`;
    const at = new Date(clock.now());
    return totalOf([await charge(sql, { ...cost, ...by, operation, resourceId: id, operationKey, at })])!;
  }

  return {
    search: (request, signal) => recalled(request, { operation: 'search', signal }),

    async context({ maxTokens, ...request }, signal) {
      const found = await recalled({ ...request, limit: MOST_RECALLED }, { operation: 'context', signal });
      const texts = found.hits.map(({ memoryId: id, title, text, score }) => ({ id, title, text, score }));
      const { text, tokens, sources } = assembleContext(texts, { maxTokens, countTokens });
      return { text, tokens, sources, isDegraded: found.isDegraded, charge: found.charge };
    },
  };
}
