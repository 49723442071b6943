import type { PointTable, TableCollection } from '../../language/memory/table-index.ts';
import type { Sql } from '../../storage/database.ts';
import {
  comparedVectors,
  copyVectors,
  createVectorTable,
  indexVectors,
  isIndexed,
  MOST_VECTOR_DIMENSIONS,
  measureVectors,
  type NearVector,
  nearestVectors,
} from '../../storage/queries/memory-vectors.ts';

/** Points copied at a time. The collection is locked meanwhile, so pages are smaller if each point is also indexed. */
const PAGE = 500;
const INDEXED_PAGE = 50;
/** Growth after which a collection's average is computed again. */
const GROWTH = 0.1;
const SEARCH_TIMEOUT_MS = 3_000;

/** Stores the points of one embedder in pgvector tables, created on demand. Call `preparePgvector` first. */
export function createPgvectorTable(sql: Sql, { embedder }: { embedder: string }): PointTable {
  const made = new Map<number, Promise<void>>();
  const indexed = new Set<string>();

  return {
    mostDimensions: MOST_VECTOR_DIMENSIONS,

    async bringUpToDate({ until, ...of }, signal) {
      await tableOf(of);
      const collection = { ...of, embedder };
      const key = `${of.dimensions} ${of.collectionId}`;
      if (!indexed.has(key) && (await isIndexed(sql, collection))) indexed.add(key);
      const limit = indexed.has(key) ? INDEXED_PAGE : PAGE;
      let copy = await copyVectors(sql, collection, { until, limit });
      while (!copy.isComplete) {
        signal.throwIfAborted();
        copy = await copyVectors(sql, collection, { until, limit });
      }
      const { revision } = copy;
      if (copy.mean === null || copy.pointsSince > GROWTH * copy.points) {
        await measureVectors(sql, collection);
        copy = await copyVectors(sql, collection, { until, limit });
      }
      if (!indexed.has(key)) {
        if (!(await indexVectors(sql, { ...collection, points: copy.points }, signal))) return null;
        indexed.add(key);
      }
      return { revision, points: copy.points, mean: Float32Array.from(copy.mean ?? []) };
    },

    async nearest(of, { query, count }) {
      const near = { query: signed(query), count, timeoutMs: SEARCH_TIMEOUT_MS };
      return (await nearestVectors(sql, { ...of, embedder }, near)).map(nearUnit);
    },

    async compared(of, { query, limit, among }) {
      const near = { query: signed(query), limit, among, timeoutMs: SEARCH_TIMEOUT_MS };
      return (await comparedVectors(sql, { ...of, embedder }, near)).map(nearUnit);
    },
  };

  async function tableOf({ dimensions }: TableCollection): Promise<void> {
    const making = made.get(dimensions) ?? createVectorTable(sql, { dimensions });
    made.set(dimensions, making);
    try {
      await making;
    } catch (error) {
      made.delete(dimensions);
      throw error;
    }
  }
}

function signed(point: Uint8Array): number[] {
  return [...new Int8Array(point.buffer, point.byteOffset, point.length)];
}

function nearUnit({ unitId, memoryId, cosine }: NearVector) {
  return { unitId: Number(unitId), memoryId, cosine };
}
