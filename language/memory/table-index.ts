import { raceAbort, within } from '../../runtime/waiting.ts';
import { lengthOf } from './point.ts';
import type { Nearness, NearUnit } from './point-collection.ts';
import type { CollectionRevision, VectorFound, VectorIndex, VectorSearch } from './vector-index.ts';

/** Copies of points in a database with a nearest-neighbour index, such as pgvector's. */
export interface PointTable {
  /** Points with more dimensions do not fit. */
  readonly mostDimensions: number;
  /**
   * Copies all changes of a collection up to a revision, including removals, and indexes them. Null if another node is
   * doing it.
   * @throws the database's error, the signal's reason
   */
  bringUpToDate(copy: TableCollection & { until: bigint }, signal: AbortSignal): Promise<TableCopy | null>;
  /** Approximately the nearest units, nearest first. */
  nearest(collection: TableCollection, near: { query: Uint8Array; count: number }): Promise<NearUnit[]>;
  /** Finds the nearest unit of each of the `limit` nearest memories, exactly, optionally only in `among`. */
  compared(
    collection: TableCollection,
    near: { query: Uint8Array; limit: number; among: readonly bigint[] | null },
  ): Promise<NearUnit[]>;
}

export interface TableCollection {
  collectionId: string;
  dimensions: number;
}

export interface TableCopy {
  /** All changes up to this revision are copied. */
  revision: bigint;
  /** Approximate number of points in the collection. */
  points: number;
  /** Mean of all points, each scaled to length 1. */
  mean: Float32Array;
}

export interface TableIndexOptions {
  table: PointTable;
  /** Compares with every point: for small collections, and for any that the table does not have yet. */
  exact: VectorIndex;
  /** Smaller collections use `exact`. */
  fromUnits: number;
  /** How long a search waits for the table to catch up. Default 250 ms. */
  waitMs?: number;
  logger: { warn(fields: object, message: string): void };
}

/**
 * Searches large collections in an indexed table, and small ones exactly. Falls back to the exact search if the table
 * is late or fails, so every search sees every change.
 */
export function createTableIndex(options: TableIndexOptions): VectorIndex {
  const { table, exact, fromUnits, waitMs = 250, logger } = options;
  const closing = new AbortController();
  const copies = new Map<string, Copy>();

  return {
    async search(search) {
      search.signal.throwIfAborted();
      const { collections, query, signal } = search;
      if (lengthOf(query) === 0) return NOTHING_NEAR;
      if (query.length > table.mostDimensions) return await exact.search(search);
      const near = await Promise.all(
        collections.map(async (collection) => {
          if (collection.units < fromUnits) return { collection, found: null };
          const found = await raceAbort(lookUp(collection, search), signal);
          return { collection, found };
        }),
      );
      const looked = near.flatMap(({ found }) => found ?? []);
      const others = near.filter(({ found }) => found === null).map(({ collection }) => collection);
      if (others.length === 0 && looked.length > 0) return together(looked, search.limit);
      return together([...looked, await exact.search({ ...search, collections: others })], search.limit);
    },
    async close() {
      closing.abort(new Error('the vector index is closed'));
      await Promise.allSettled([...copies.values()].map(({ updating }) => updating));
      await exact.close();
    },
  };

  /** Null if the table cannot answer now. */
  async function lookUp(collection: CollectionRevision, search: VectorSearch): Promise<VectorFound | null> {
    const { query, limit, among } = search;
    const of = { collectionId: collection.id, dimensions: query.length };
    try {
      const copy = await inTime(collection, of);
      if (copy === null) return null;
      const nearest =
        (among === null ? await nearestMemories(of, { query, limit }) : null) ??
        (await table.compared(of, { query, limit, among }));
      return {
        nearest,
        compared: copy.points,
        sumOfCosines: copy.points * cosineTo(copy.mean, query),
        isPartial: false,
      };
    } catch (error) {
      if (!closing.signal.aborted) logger.warn({ err: error }, 'embedding table cannot be searched');
      return null;
    }
  }

  /** An update continues after the search gave up, for the next search. */
  async function inTime(collection: CollectionRevision, of: TableCollection): Promise<TableCopy | null> {
    const key = `${of.dimensions} ${of.collectionId}`;
    const known: Copy = copies.get(key) ?? { has: null, updating: null, sinceMs: 0 };
    copies.set(key, known);
    const isThere = () => known.has !== null && known.has.revision >= collection.revision;
    // The wait counts from the start of the update, so that an update of minutes does not delay every search.
    const passedMs = known.updating === null ? 0 : performance.now() - known.sinceMs;
    const endsAtMs = performance.now() + waitMs - passedMs;
    while (!isThere()) {
      // The update in progress may have started before the requested revision.
      known.updating ??= update(known, { ...of, until: collection.revision });
      const outcome = await within(known.updating, { ms: Math.max(0, endsAtMs - performance.now()) });
      if (outcome !== 'updated') return null;
    }
    return known.has;
  }

  async function update(known: Copy, span: TableCollection & { until: bigint }): Promise<'updated' | 'not now'> {
    known.sinceMs = performance.now();
    try {
      const copy = await table.bringUpToDate(span, closing.signal);
      if (copy === null) return 'not now';
      known.has = copy;
      return 'updated';
    } catch (error) {
      if (!closing.signal.aborted) logger.warn({ err: error }, 'embeddings cannot be copied into their table');
      return 'not now';
    } finally {
      known.updating = null;
    }
  }

  /**
   * Null if the index finds too few memories. A long memory may fill the result with its units, and points that occur
   * thousands of times may cut the index's graph off from the others.
   */
  async function nearestMemories(
    of: TableCollection,
    { query, limit }: Pick<VectorSearch, 'query' | 'limit'>,
  ): Promise<NearUnit[] | null> {
    for (const count of [limit + MORE_UNITS, 4 * (limit + MORE_UNITS)]) {
      const units = await table.nearest(of, { query, count });
      const best = new Map<string, NearUnit>();
      for (const unit of units) if (!best.has(unit.memoryId)) best.set(unit.memoryId, unit);
      if (best.size >= limit) return [...best.values()].slice(0, limit);
      if (units.length < count) return null;
    }
    return null;
  }
}

const MORE_UNITS = 50;
const NOTHING_NEAR: VectorFound = { nearest: [], compared: 0, sumOfCosines: 0, isPartial: false };

interface Copy {
  has: TableCopy | null;
  updating: Promise<'updated' | 'not now'> | null;
  /** Start of the update. */
  sinceMs: number;
}

/** The sum of cosines equals the dot product with the sum. */
function cosineTo(mean: Float32Array, query: Uint8Array): number {
  const signed = new Int8Array(query.buffer, query.byteOffset, query.length);
  let dot = 0;
  for (let at = 0; at < signed.length; at++) dot += signed[at]! * (mean[at] ?? 0);
  return dot / lengthOf(query);
}

/** Merges results without checking for duplicates: a memory is in one collection only. */
function together(parts: readonly VectorFound[], limit: number): VectorFound {
  const all: Nearness = { nearest: [], compared: 0, sumOfCosines: 0 };
  for (const { nearest, compared, sumOfCosines } of parts) {
    all.nearest.push(...nearest);
    all.compared += compared;
    all.sumOfCosines += sumOfCosines;
  }
  all.nearest.sort((a, b) => b.cosine - a.cosine || a.unitId - b.unitId);
  return { ...all, nearest: all.nearest.slice(0, limit), isPartial: parts.some(({ isPartial }) => isPartial) };
}
