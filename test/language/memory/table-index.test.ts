import { describe, expect, it, onTestFinished } from 'vitest';
import { pointOf } from '../../../language/memory/point.ts';
import type { NearUnit } from '../../../language/memory/point-collection.ts';
import { createTableIndex, type PointTable, type TableCopy } from '../../../language/memory/table-index.ts';
import type { VectorIndex, VectorSearch } from '../../../language/memory/vector-index.ts';

const QUERY = pointOf(Float32Array.from([1, 0]));
const LARGE = { id: 'large', revision: 3n, units: 10_000 };
const SMALL = { id: 'small', revision: 1n, units: 9_999 };

describe('index with a table for large collections', () => {
  it('compares small collections exactly and merges both by cosine', async () => {
    const few = async () => [near(1, 0.9), near(2, 0.2)];
    const { search, compared } = indexed({ nearest: few, compared: few });
    const found = await search({ collections: [SMALL, LARGE] });
    expect(compared).toEqual([['small']]);
    expect(found.nearest.map(({ unitId }) => unitId)).toEqual([1, 100, 2]);
    expect(found).toMatchObject({ compared: 10 + 1, isPartial: false });
    expect(found.sumOfCosines).toBeCloseTo(10 * 0.5 + 0.7);
  });

  it('compares no collection if all are large', async () => {
    const { search, compared } = indexed();
    expect((await search({ collections: [LARGE] })).nearest.map(({ unitId }) => unitId)).toEqual([1]);
    expect(compared).toEqual([]);
  });

  it('compares a collection until its table copy is current', async () => {
    const copying = Promise.withResolvers<TableCopy>();
    const { search, compared } = indexed({ bringUpToDate: () => copying.promise }, { waitMs: 1 });
    await search({ collections: [LARGE] });
    expect(compared).toEqual([['large']]);
    copying.resolve(copyOf(3n));
    await copying.promise;
    await search({ collections: [LARGE] });
    expect(compared).toEqual([['large']]);
  });

  it('updates once for concurrent searches, to their latest revision', async () => {
    const spans: bigint[] = [];
    const { search, compared } = indexed({
      bringUpToDate: async ({ until }): Promise<TableCopy> => {
        spans.push(until);
        await Promise.resolve();
        return copyOf(until);
      },
    });
    await Promise.all([3n, 3n, 5n, 4n].map((revision) => search({ collections: [{ ...LARGE, revision }] })));
    await search({ collections: [{ ...LARGE, revision: 5n }] });
    expect(spans).toEqual([3n, 5n]);
    expect(compared).toEqual([]);
  });

  it.each<[string, Partial<PointTable>, number]>([
    ['copying fails', { bringUpToDate: () => Promise.reject(new Error('no table')) }, 1],
    ['the query fails', { nearest: () => Promise.reject(new Error('no index')) }, 1],
    ['another node builds the index', { bringUpToDate: async () => null }, 0],
  ])('falls back to comparison when %s', async (_, table, warnings) => {
    const { search, compared, warned } = indexed(table);
    expect((await search({ collections: [LARGE] })).nearest.map(({ unitId }) => unitId)).toEqual([100]);
    expect(compared).toEqual([['large']]);
    expect(warned).toHaveLength(warnings);
  });

  it('compares points of more dimensions than the table allows', async () => {
    const { search, compared } = indexed({ mostDimensions: 1 });
    await search({ collections: [LARGE] });
    expect(compared).toEqual([['large']]);
  });

  it('compares in the table when the index finds too few memories', async () => {
    const asked: (readonly bigint[] | null)[] = [];
    const { search } = indexed({
      nearest: async (_, { count }) => Array.from({ length: count }, (__, at) => near(at, 0.9, 'one')),
      compared: async (_, { among }) => {
        asked.push(among);
        return [near(1, 0.9, 'one'), near(9, 0.5, 'two')];
      },
    });
    const found = await search({ collections: [LARGE], limit: 2 });
    expect(found.nearest.map(({ memoryId }) => memoryId)).toEqual(['one', 'two']);
    expect(asked).toEqual([null]);
  });

  it('stops waiting when the search aborts, and leaves the copy to the next search', async () => {
    const copying = Promise.withResolvers<TableCopy>();
    const { search, compared } = indexed({ bringUpToDate: () => copying.promise });
    const stopping = new AbortController();
    const given = search({ collections: [LARGE], signal: stopping.signal });
    stopping.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    copying.resolve(copyOf(3n));
    expect((await search({ collections: [LARGE] })).nearest).toHaveLength(1);
    expect(compared).toEqual([]);
  });

  it('stops copying when it closes', async () => {
    const { index, search } = indexed(
      {
        bringUpToDate: (_, signal) =>
          new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      },
      { waitMs: 1 },
    );
    await search({ collections: [LARGE] });
    await index.close();
  });
});

function indexed(overrides: Partial<PointTable> = {}, { waitMs = Number.POSITIVE_INFINITY } = {}) {
  const compared: string[][] = [];
  const warned: string[] = [];
  const exact: VectorIndex = {
    async search({ collections }) {
      compared.push(collections.map(({ id }) => id));
      return { nearest: [near(100, 0.7)], compared: 1, sumOfCosines: 0.7, isPartial: false };
    },
    async close() {},
  };
  const table: PointTable = {
    mostDimensions: 4_000,
    bringUpToDate: async ({ until }) => copyOf(until),
    nearest: async () => [near(1, 0.9)],
    compared: async () => [near(1, 0.9)],
    ...overrides,
  };
  const logger = { warn: (_: object, message: string) => void warned.push(message) };
  const index = createTableIndex({ table, exact, fromUnits: 10_000, waitMs, logger });
  onTestFinished(() => index.close());
  const search = (asked: Partial<VectorSearch>) => {
    const { signal } = new AbortController();
    return index.search({ collections: [], query: QUERY, limit: 10, among: null, signal, ...asked });
  };
  return { index, search, compared, warned };
}

function near(unitId: number, cosine: number, memoryId = `m${unitId}`): NearUnit {
  return { unitId, memoryId, cosine };
}

function copyOf(revision: bigint): TableCopy {
  return { revision, points: 10, mean: Float32Array.from([0.5, 0]) };
}
