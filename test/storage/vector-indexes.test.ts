import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createPointSource } from '../../actors/memory/recall-store.ts';
import { createPgvectorTable } from '../../actors/memory/vector-table.ts';
import { createOfflineEmbedder } from '../../language/memory/embedder-offline.ts';
import { pointOf } from '../../language/memory/point.ts';
import { PointCollection } from '../../language/memory/point-collection.ts';
import { createTableIndex } from '../../language/memory/table-index.ts';
import { createVectorIndex, type VectorIndex } from '../../language/memory/vector-index.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { deleteMemory } from '../../storage/queries/memories.ts';
import {
  createMemoryCollection,
  deleteMemoryCollection,
  type MemoryCollectionRow,
  type MemoryViewer,
  nextRevision,
} from '../../storage/queries/memory-collections.ts';
import { collectionsToSearch } from '../../storage/queries/memory-search.ts';
import { setUnitPoints } from '../../storage/queries/memory-units.ts';
import { preparePgvector } from '../../storage/queries/memory-vectors.ts';
import { chunk, process, remember, seedColleague, seedMemories } from './memory-fixture.ts';
import { hasPgvector } from './pgvector.ts';
import { NOW } from './seed.ts';
import { externalServer, openEmbeddedServer, type TestDatabase, type TestServer } from './test-database.ts';

const SIGNAL = new AbortController().signal;
const SILENT = { warn() {} };
const EMBEDDER = 'test-1';

describe('memory points in the vector thread', () =>
  conformance(openEmbeddedServer, async (sql, embedder) =>
    createVectorIndex({ source: createPointSource(sql, { embedder }), logger: SILENT }),
  ));

describe.skipIf(!hasPgvector)('memory points in pgvector', () =>
  conformance(
    async () => externalServer(),
    async (sql, embedder) => {
      expect(await preparePgvector(sql)).toHaveProperty('version');
      const table = createPgvectorTable(sql, { embedder });
      return createTableIndex({
        table,
        exact: NO_EXACT_SEARCH,
        fromUnits: 1,
        waitMs: Number.POSITIVE_INFINITY,
        logger: SILENT,
      });
    },
  ),
);

/** Fails exact comparisons, so that only the tested index can answer. */
const NO_EXACT_SEARCH: VectorIndex = {
  async search({ collections }) {
    if (collections.length > 0) throw new Error('compared in the thread');
    return { nearest: [], compared: 0, sumOfCosines: 0, isPartial: false };
  },
  async close() {},
};

function conformance(
  openServer: () => Promise<TestServer>,
  open: (sql: Sql, embedder: string) => Promise<VectorIndex>,
) {
  let server: TestServer;
  let database: TestDatabase;
  let sql: Sql;
  let viewer: MemoryViewer;
  let own: MemoryCollectionRow;
  let index: VectorIndex;
  beforeAll(async () => {
    server = await openServer();
  });
  afterAll(async () => {
    await server.close();
  });
  beforeEach(async () => {
    database = await server.createDatabase();
    ({ sql, viewer, collection: own } = await seedMemories(database.sql));
    index = await open(sql, EMBEDDER);
  });
  afterEach(async () => {
    await index.close();
    await database.drop();
  });

  it('returns the nearest with their cosines in order', async () => {
    const random = pseudoRandom(1);
    const truth = new PointCollection(16);
    for (let number = 0; number < 60; number++) {
      const bytes = pointOf(Float32Array.from({ length: 16 }, () => random() - 0.5));
      const memoryId = await put(own, [bytes]);
      truth.add({ unitId: Number(await unitOf(memoryId)), memoryId, bytes });
    }
    const query = pointOf(Float32Array.from({ length: 16 }, () => random() - 0.5));
    const exact = truth.nearestTo(query, { limit: 20, among: null });
    const found = await search(query, { limit: 20 });
    expect(found.isPartial).toBe(false);
    expect(found.nearest.map(({ memoryId }) => memoryId)).toEqual(exact.nearest.map(({ memoryId }) => memoryId));
    for (const [rank, { cosine }] of found.nearest.entries()) {
      expect(cosine).toBeCloseTo(exact.nearest[rank]!.cosine, 5);
    }
    expect(found.compared).toBe(60);
    expect(found.sumOfCosines / 60).toBeCloseTo(exact.sumOfCosines / 60, 3);
  });

  it('sees committed additions, replacements and removals', async () => {
    const a = await put(own, [pointAt(0)]);
    expect(await near(pointAt(0))).toEqual([a]);
    const b = await put(own, [pointAt(5)]);
    expect(await near(pointAt(0))).toEqual([a, b]);
    await inTransaction(sql, async (tx) => {
      const revision = (await nextRevision(tx, own.id))!;
      const points = [{ id: await unitOf(a), embedder: EMBEDDER, bytes: pointAt(90) }];
      await setUnitPoints(tx, { collectionId: own.id, points, revision });
    });
    expect(await near(pointAt(0))).toEqual([b, a]);
    await deleteMemory(sql, viewer, { id: b, now: NOW });
    expect(await near(pointAt(0))).toEqual([a]);
  });

  it('finds points of a new embedder while they replace the old ones', async () => {
    const [a, b] = [await put(own, [pointAt(0)], 'older-1'), await put(own, [pointAt(5)], 'older-1')];
    const older = await open(sql, 'older-1');
    expect(await near(pointAt(0), { index: older })).toEqual([a, b]);
    expect(await near(pointAt(0))).toEqual([]);
    for (const [memoryId, found] of [
      [b, [b]],
      [a, [a, b]],
    ] as const) {
      const unitId = await unitOf(memoryId);
      await inTransaction(sql, async (tx) => {
        const revision = (await nextRevision(tx, own.id))!;
        const points = [{ id: unitId, embedder: EMBEDDER, bytes: pointAt(memoryId === a ? 0 : 5) }];
        await setUnitPoints(tx, { collectionId: own.id, points, revision });
      });
      expect(await near(pointAt(0))).toEqual(found);
    }
    await older.close();
  });

  it('ignores a rolled-back transaction', async () => {
    const a = await put(own, [pointAt(0)]);
    const failed = inTransaction(sql, async (tx) => {
      await deleteMemory(tx, viewer, { id: a, now: NOW });
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    expect(await near(pointAt(0))).toEqual([a]);
  });

  it('continues where another index stopped', async () => {
    const a = await put(own, [pointAt(0)]);
    await near(pointAt(0));
    const b = await put(own, [pointAt(1)]);
    const second = await open(sql, EMBEDDER);
    expect(await near(pointAt(0), { index: second })).toEqual([a, b]);
    const c = await put(own, [pointAt(2)]);
    expect(await near(pointAt(0))).toEqual([a, b, c]);
    await deleteMemory(sql, viewer, { id: a, now: NOW });
    expect(await near(pointAt(0), { index: second })).toEqual([b, c]);
    await second.close();
  });

  it('finds everything near in few of many collections, and nothing of others', async () => {
    const colleague = await seedColleague(sql, viewer.workspaceId, 'member');
    const crowd = await team('crowd');
    await insert(
      crowd,
      Array.from({ length: 3_000 }, (_, number) => pointAt((number % 100) / 100)),
    );
    const small = await team('small', [colleague.userId]);
    const expected: string[] = [];
    for (let number = 0; number < 30; number++) expected.push(await put(small, [pointAt(20 + number)]));
    expect(await near(pointAt(0), { by: colleague, limit: 25 })).toEqual(expected.slice(0, 25));
    expect(await near(pointAt(0), { by: colleague, limit: 50 })).toEqual(expected);
    expect(await near(pointAt(0), { limit: 50 })).toHaveLength(50);
    await deleteMemoryCollection(sql, viewer, { id: small.id, now: NOW });
    expect(await near(pointAt(0), { by: colleague })).toEqual([]);
  });

  it('finds other memories beside one with hundreds of nearer units', async () => {
    const long = await put(
      own,
      Array.from({ length: 1_500 }, (_, number) => pointAt(number / 1_500)),
    );
    const others: string[] = [];
    for (let number = 0; number < 20; number++) others.push(await put(own, [pointAt(30 + number)]));
    expect(await near(pointAt(0), { limit: 20 })).toEqual([long, ...others.slice(0, 19)]);
  });

  it('searches only the given units', async () => {
    const a = await put(own, [pointAt(0), pointAt(50)]);
    const b = await put(own, [pointAt(10)]);
    await put(own, [pointAt(1)]);
    const units = await sql<{ id: bigint }[]>`select id from memory_units where memory_id = ${a} order by position`;
    const among = [units[1]!.id, await unitOf(b)];
    const found = await search(pointAt(0), { among });
    expect(found.nearest.map(({ unitId, memoryId }) => [memoryId, BigInt(unitId)])).toEqual([
      [b, among[1]],
      [a, among[0]],
    ]);
    expect((await search(pointAt(0), { among: [] })).nearest).toEqual([]);
  });

  it('ignores points of another embedder, of other dimensions or of length zero', async () => {
    const a = await put(own, [pointAt(10)]);
    await put(own, [pointAt(0)], 'another-1');
    await put(own, [pointOf(Float32Array.from([1, 0, 0]))]);
    await put(own, [new Uint8Array(8)]);
    expect(await near(pointAt(0))).toEqual([a]);
    expect((await search(new Uint8Array(8))).nearest).toEqual([]);
  });

  it('shows each writer its own changes under concurrency', async () => {
    await Promise.all(
      Array.from({ length: 20 }, async (_, number) => {
        const memoryId = await put(own, [pointAt(number * 2)]);
        expect(await near(pointAt(number * 2), { limit: 1 })).toEqual([memoryId]);
      }),
    );
    expect(await near(pointAt(0), { limit: 100 })).toHaveLength(20);
  });

  it('stops when aborted', async () => {
    await put(own, [pointAt(0)]);
    await expect(near(pointAt(0), { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
  });

  it('finds more than 95 of 100 of the 20 nearest among 10,000 texts', { timeout: 240_000 }, async () => {
    const embedder = createOfflineEmbedder();
    const random = pseudoRandom(7);
    const text = () => Array.from({ length: 30 }, () => word(Math.floor(20_000 ** random()))).join(' ');
    const texts = Array.from({ length: 10_000 }, text);
    const points = (await embedder.embed(texts, SIGNAL)).map(pointOf);
    await insert(own, points);
    const truth = new PointCollection(points[0]!.length);
    for (const [unitId, bytes] of points.entries()) truth.add({ unitId, memoryId: String(unitId), bytes });
    let found = 0;
    for (let number = 0; number < 50; number++) {
      const words = texts[Math.floor(random() * texts.length)]!.split(' ');
      const [embedding] = await embedder.embed([words.slice(0, 5).join(' ')], SIGNAL);
      const query = pointOf(embedding!);
      const twentieth = truth.nearestTo(query, { limit: 20, among: null }).nearest.at(-1)!.cosine;
      const { nearest } = await search(query, { limit: 20 });
      found += nearest.filter(({ cosine }) => cosine >= twentieth - 1e-6).length;
    }
    expect(found / 1_000).toBeGreaterThan(0.95);
  });

  interface SearchOptions {
    index?: VectorIndex;
    by?: MemoryViewer;
    limit?: number;
    among?: readonly bigint[] | null;
    signal?: AbortSignal;
  }

  async function search(query: Uint8Array, { by = viewer, limit = 10, among = null, ...asked }: SearchOptions = {}) {
    const { index: asking = index, signal = SIGNAL } = asked;
    const collections = await collectionsToSearch(sql, by, {});
    const used = collections.filter(({ units }) => units > 0);
    return await asking.search({ collections: used, query, limit, among, signal });
  }

  async function near(query: Uint8Array, asked: SearchOptions = {}): Promise<string[]> {
    return (await search(query, asked)).nearest.map(({ memoryId }) => memoryId);
  }

  async function put(collection: MemoryCollectionRow, points: Uint8Array[], embedder = EMBEDDER): Promise<string> {
    const memory = await remember(sql, collection);
    const units = points.map((bytes) => chunk('text', { embedder, bytes }));
    expect(await process(sql, memory, { units })).toBe(true);
    return memory.id;
  }

  async function unitOf(memoryId: string): Promise<bigint> {
    const [unit] = await sql<{ id: bigint }[]>`select id from memory_units where memory_id = ${memoryId}`;
    return unit!.id;
  }

  async function team(name: string, memberUserIds: number[] = []): Promise<MemoryCollectionRow> {
    const { workspaceId, userId: createdByUserId } = viewer;
    return await createMemoryCollection(sql, {
      workspaceId,
      type: 'team',
      name,
      createdByUserId,
      memberUserIds,
      now: NOW,
    });
  }

  /** Bulk insert of one memory per point. */
  async function insert(collection: MemoryCollectionRow, points: readonly Uint8Array[]): Promise<void> {
    for (let start = 0; start < points.length; start += 1_000) {
      const rows = points.slice(start, start + 1_000).map((bytes) => Buffer.from(bytes).toString('base64'));
      await inTransaction(sql, async (tx) => {
        const revision = (await nextRevision(tx, collection.id))!;
        await tx`
          with given as (select gen_random_uuid() as id, point from jsonb_array_elements_text(${tx.json(rows)}) as point),
          made as (
            insert into memories (id, workspace_id, collection_id, user_id, content, metadata, infer, status, processed_as,
              content_hash, characters, created_at, updated_at, ready_at)
            select id, ${collection.workspaceId}, ${collection.id}, ${collection.createdByUserId}, 'text', '{}', false,
              'ready', 'chunks', '', 4, now(), now(), now() from given
          )
          insert into memory_units (collection_id, memory_id, kind, position, text, terms, embedder, embedding, revision)
          select ${collection.id}, id, 'chunk', 0, 'text', '', ${EMBEDDER}, decode(point, 'base64'), ${revision} from given`;
        await tx`update memory_collections set units = units + ${rows.length} where id = ${collection.id}`;
      });
    }
  }
}

/** A unit vector in the plane of the first two of eight dimensions. */
function pointAt(degrees: number): Uint8Array {
  const radians = (degrees * Math.PI) / 180;
  return pointOf(Float32Array.from([Math.cos(radians), Math.sin(radians), 0, 0, 0, 0, 0, 0]));
}

/** A linear congruential generator of numbers from 0 to 1. */
function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The same six letters for the same number. */
function word(number: number): string {
  const random = pseudoRandom(number * 7_919 + 13);
  random();
  return Array.from({ length: 6 }, () => String.fromCharCode(97 + Math.floor(random() * 26))).join('');
}
