import { describe, expect, it, onTestFinished } from 'vitest';
import { pointOf } from '../../../language/memory/point.ts';
import {
  createVectorIndex,
  type PointSource,
  type StoredPoint,
  startVectorThread,
  type VectorIndexOptions,
} from '../../../language/memory/vector-index.ts';

const SIGNAL = new AbortController().signal;

describe('the vector index', () => {
  it('sees every change up to the requested revision, including removals', async () => {
    const { search, put, remove } = indexed();
    put('a', [1, 0]);
    put('b', [0, 1]);
    expect(await search([1, 0.1])).toEqual(['a', 'b']);
    put('c', [1, 0.1]);
    expect(await search([1, 0.1])).toEqual(['c', 'a', 'b']);
    remove('a');
    put('b', [1, 0.1]);
    expect((await search([1, 0.1])).toSorted()).toEqual(['b', 'c']);
  });

  it('reads each change once, page by page', async () => {
    const { search, put, pages } = indexed();
    for (let at = 1; at <= 1_200; at++) put(`m${at}`, [1, at]);
    await search([1, 0]);
    expect(pages).toEqual([500, 500, 200]);
    put('new', [1, 0]);
    expect((await search([1, 0])).slice(0, 1)).toEqual(['new']);
    await search([1, 0]);
    expect(pages.slice(3)).toEqual([1]);
  });

  it('reloads a collection whose removal log was truncated', async () => {
    const { search, put, remove, forget } = indexed();
    put('a', [1, 0]);
    put('b', [1, 0]);
    await search([1, 0]);
    remove('a');
    forget();
    expect(await search([1, 0])).toEqual(['b']);
  });

  it('restarts with all points when its thread dies, even during a search', async () => {
    const deaths: string[] = [];
    const { index, search, put, killing } = indexed({ logger: { warn: (_, message) => void deaths.push(message) } });
    put('a', [1, 0]);
    expect(await search([1, 0])).toEqual(['a']);
    put('b', [1, 0.1]);
    killing.next = true;
    expect(await search([1, 0])).toEqual(['a', 'b']);
    expect(deaths).toEqual(['vector thread died']);
    await index.close();
    await expect(search([1, 0])).rejects.toThrow('closed');
  });

  it('searches only the given units', async () => {
    const { search, put, unitIds } = indexed();
    put('a', [1, 0]);
    put('b', [0, 1]);
    expect(await search([1, 0], { among: [unitIds.get('b')!] })).toEqual(['b']);
    expect(await search([1, 0], { among: [] })).toEqual([]);
  });

  it('answers concurrent searches while points are added', async () => {
    const { search, put } = indexed();
    const searches = Array.from({ length: 40 }, async (_, at) => {
      put(`m${at}`, [1, at]);
      // A search sees the points added before it.
      expect(await search([1, at], { limit: 100 })).toContain(`m${at}`);
    });
    await Promise.all(searches);
    expect(await search([1, 0], { limit: 100 })).toHaveLength(40);
  });

  it('skips collections beyond its memory limit and reports a partial result', async () => {
    const { index, put, collections } = indexed({ maxBytes: 100_000 });
    put('a', [1, 0]);
    const large = { id: 'large', revision: 1n, units: 10_000_000 };
    const query = { query: pointOf(Float32Array.from([1, 0])), limit: 5, among: null, signal: SIGNAL };
    const found = await index.search({ ...query, collections: [large, ...collections()] });
    expect(found).toMatchObject({ isPartial: true, compared: 1 });
    expect(await index.search({ ...query, collections: collections() })).toMatchObject({ isPartial: false });
  });

  it('finishes loading for later searches when the first one aborts', async () => {
    const { search, put, hold } = indexed();
    put('a', [1, 0]);
    const release = hold();
    const stopping = new AbortController();
    const given = search([1, 0], { signal: stopping.signal });
    stopping.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    release();
    expect(await search([1, 0])).toEqual(['a']);
  });

  it('reports source errors and recovers with the source', async () => {
    const { search, put, source } = indexed();
    put('a', [1, 0]);
    const { added } = source;
    source.added = async () => {
      throw new Error('no database');
    };
    await expect(search([1, 0])).rejects.toThrow('no database');
    source.added = added;
    expect(await search([1, 0])).toEqual(['a']);
  });
});

function indexed(overrides: Partial<VectorIndexOptions> = {}) {
  const points = new Map<string, StoredPoint>();
  const removals: { revision: bigint; unitId: bigint }[] = [];
  const unitIds = new Map<string, bigint>();
  const pages: number[] = [];
  const killing = { next: false };
  let revision = 0n;
  let forgotten = 0n;
  let held: Promise<void> = Promise.resolve();
  const source: PointSource = {
    async added({ after, afterUnitId, until, limit }) {
      await held;
      if (killing.next) {
        killing.next = false;
        await threads.at(-1)!.terminate();
      }
      const page = [...points.values()]
        .filter((point) => point.revision > after || (point.revision === after && point.unitId > afterUnitId))
        .filter((point) => point.revision <= until)
        .sort((a, b) => Number(a.revision - b.revision))
        .slice(0, limit);
      pages.push(page.length);
      return page;
    },
    async removed({ after, until }) {
      if (forgotten > after) return null;
      return removals
        .filter((removal) => removal.revision > after && removal.revision <= until)
        .map(({ unitId }) => unitId);
    },
  };
  const threads: ReturnType<typeof startVectorThread>[] = [];
  const startThread = () => {
    const thread = startVectorThread();
    threads.push(thread);
    return thread;
  };
  const index = createVectorIndex({ source, startThread, logger: { warn() {} }, ...overrides });
  onTestFinished(() => index.close());
  const collections = () => [{ id: 'one', revision, units: points.size }];
  const remove = (memoryId: string) => {
    const point = points.get(memoryId);
    if (point === undefined) return;
    points.delete(memoryId);
    revision += 1n;
    removals.push({ revision, unitId: point.unitId });
  };
  const put = (memoryId: string, vector: number[]) => {
    remove(memoryId);
    revision += 1n;
    unitIds.set(memoryId, revision);
    points.set(memoryId, { unitId: revision, memoryId, bytes: pointOf(Float32Array.from(vector)), revision });
  };
  return {
    index,
    source,
    pages,
    unitIds,
    killing,
    collections,
    put,
    remove,
    forget() {
      forgotten = revision;
      removals.length = 0;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    async search(
      vector: number[],
      {
        among = null,
        limit = 10,
        signal = SIGNAL,
      }: { among?: bigint[] | null; limit?: number; signal?: AbortSignal } = {},
    ): Promise<string[]> {
      const query = pointOf(Float32Array.from(vector));
      const found = await index.search({ collections: collections(), query, limit, among, signal });
      return found.nearest.map(({ memoryId }) => memoryId);
    },
  };
}
