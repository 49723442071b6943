import { raceAbort, within } from '../../runtime/waiting.ts';
import { lengthOf } from './point.ts';
import type { Nearness, NearUnit } from './point-collection.ts';
import type { CollectionRevision, VectorFound, VectorIndex, VectorSearch } from './vector-index.ts';

/** Copies of points in a database that has an index for what is near, such as pgvector's. */
export interface PointTable {
  /** Points of more cannot be in it. */
  readonly mostDimensions: number;
  /**
   * Copies every change of a collection up to a revision, removals too, and indexes it. Null: another node is at it.
   * @throws what the database throws, the signal's reason
   */
  bringUpToDate(copy: TableCollection & { until: bigint }, signal: AbortSignal): Promise<TableCopy | null>;
  /** About the nearest units, nearest first. */
  nearest(collection: TableCollection, near: { query: Uint8Array; count: number }): Promise<NearUnit[]>;
  /** The nearest unit of each of the `limit` nearest memories, without the index; of `among` alone where it is given. */
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
  /** Everything up to it is there. */
  revision: bigint;
  /** How many points are in the collection, about. */
  points: number;
  /** The average of all, each of length 1. */
  mean: Float32Array;
}

export interface TableIndexOptions {
  table: PointTable;
  /** Compares with every point: for small collections, and for all while the table does not have theirs. */
  exact: VectorIndex;
  /** Collections of fewer units are compared. */
  fromUnits: number;
  /** How long a search waits for what is not copied yet. Default 250 ms. */
  waitMs?: number;
  logger: { warn(fields: object, message: string): void };
}

/**
 * Looks large collections up in a table that has an index, each in its own, and compares the points of the others. What
 * the table does not have in time, and whatever it fails at, is compared as well: so every change is seen.
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

  /** Null: the table cannot tell now. */
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

  /** Nobody stops it: what a search did not wait for, the next one finds. */
  async function inTime(collection: CollectionRevision, of: TableCollection): Promise<TableCopy | null> {
    const key = `${of.dimensions} ${of.collectionId}`;
    const known: Copy = copies.get(key) ?? { has: null, updating: null, sinceMs: 0 };
    copies.set(key, known);
    const isThere = () => known.has !== null && known.has.revision >= collection.revision;
    // What takes minutes is not waited for again and again.
    const passedMs = known.updating === null ? 0 : performance.now() - known.sinceMs;
    const endsAtMs = performance.now() + waitMs - passedMs;
    while (!isThere()) {
      // It may have begun before the revision that is asked for.
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
   * Null when the index finds too few memories: a long one may have many units that are near, and from points that occur a
   * thousand times the index may know no way to others.
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
  /** When that began. */
  sinceMs: number;
}

/** The sum of cosines is the cosine to the sum. */
function cosineTo(mean: Float32Array, query: Uint8Array): number {
  const signed = new Int8Array(query.buffer, query.byteOffset, query.length);
  let dot = 0;
  for (let at = 0; at < signed.length; at++) dot += signed[at]! * (mean[at] ?? 0);
  return dot / lengthOf(query);
}

/** A memory is in one collection alone. */
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
