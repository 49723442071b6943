import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MemoryIndexChoice, openVectorIndex } from '../../actors/memory/open-vector-index.ts';
import { pointOf } from '../../language/memory/point.ts';
import { connect, type Sql } from '../../storage/database.ts';
import {
  createMemoryCollection,
  deleteMemoryCollection,
  type MemoryCollectionRow,
  type MemoryViewer,
} from '../../storage/queries/memory-collections.ts';
import { collectionsToSearch } from '../../storage/queries/memory-search.ts';
import { eventually } from '../eventually.ts';
import { chunk, process, remember, seedMemories } from '../storage/memory-fixture.ts';
import { hasPgvector } from '../storage/pgvector.ts';
import { NOW } from '../storage/seed.ts';
import { externalServer, openEmbeddedServer, type TestDatabase } from '../storage/test-database.ts';

const EMBEDDER = 'test-1';
const SIGNAL = new AbortController().signal;
const QUERY = pointOf(Float32Array.from([1, 0]));

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

function opened(sql: Sql, choice: MemoryIndexChoice, waitMs = 60_000) {
  const logged: string[] = [];
  const log = (_: object, message: string) => void logged.push(message);
  const logger = { info: log, warn: (_: object, message: string) => void logged.push(`warning: ${message}`) };
  const index = openVectorIndex({ sql, embedder: EMBEDDER, choice, fromUnits: 1, waitMs, logger });
  open.push(index);
  return { index, logged };
}

describe('vector index without pgvector', () => {
  it('compares all points, and logs that once', async () => {
    const server = await openEmbeddedServer();
    open.push(server);
    const database = await server.createDatabase();
    open.push({ close: () => database.drop() });
    const auto = opened(database.sql, 'auto');
    expect(await auto.index.chosen).toBe('exact');
    expect(auto.logged).toEqual(['vector search is exact']);
    const wanted = opened(database.sql, 'pgvector');
    expect(await wanted.index.chosen).toBe('exact');
    expect(wanted.logged).toEqual(['warning: there is no pgvector: vector search is exact']);
  });
});

describe.skipIf(!hasPgvector)('vector index with pgvector', () => {
  let database: TestDatabase;
  let sql: Sql;
  let viewer: MemoryViewer;
  let own: MemoryCollectionRow;
  beforeEach(async () => {
    const server = externalServer();
    database = await server.createDatabase();
    open.push(server, { close: () => database.drop() });
    ({ sql, viewer, collection: own } = await seedMemories(database.sql));
  });

  it('uses pgvector unless the settings say otherwise', async () => {
    const exact = opened(sql, 'exact');
    expect(await exact.index.chosen).toBe('exact');
    expect(await tables()).toEqual([]);
    const auto = opened(sql, 'auto');
    expect(await auto.index.chosen).toBe('pgvector');
    expect(auto.logged).toEqual(['vector search of large collections uses pgvector']);
    await put(own);
    expect(await found(auto.index)).toBe(1);
    expect(await tables()).toEqual(['memory_vector_copies', 'memory_vectors_2']);
  });

  it('initialises once when many nodes start and search together', async () => {
    await put(own);
    const pools = Array.from({ length: 6 }, () => connect({ url: database.url, max: 3 }));
    for (const pool of pools) open.push({ close: () => pool.end({ timeout: 5 }) });
    const nodes = pools.map((pool) => opened(pool, 'auto'));
    expect(await Promise.all(nodes.map(({ index }) => index.chosen))).toEqual(nodes.map(() => 'pgvector'));
    expect(await Promise.all(nodes.map(({ index }) => found(index)))).toEqual(nodes.map(() => 1));
    expect(nodes.flatMap(({ logged }) => logged.filter((message) => message.startsWith('warning')))).toEqual([]);
  });

  it('falls back to exact search when the role may not create the extension', async () => {
    const role = `tandem_test_${randomBytes(4).toString('hex')}`;
    await sql.unsafe(`create role ${role} login password 'test'; grant all on all tables in schema public to ${role}`);
    const url = new URL(database.url);
    [url.username, url.password] = [role, 'test'];
    const limited = connect({ url: url.href, max: 2 });
    try {
      const { index, logged } = opened(limited, 'auto');
      expect(await index.chosen).toBe('exact');
      expect(logged).toEqual(['vector search is exact']);
      await put(own);
      expect(await found(index)).toBe(1);
      await index.close();
    } finally {
      await limited.end({ timeout: 1 });
      await sql.unsafe(`drop owned by ${role}; drop role ${role}`);
    }
  });

  it('survives a dropped extension, and rebuilds at the next start', async () => {
    await put(own);
    const { index, logged } = opened(sql, 'auto');
    expect(await found(index)).toBe(1);
    await sql.unsafe('drop extension vector cascade');
    await put(own);
    expect(await found(index)).toBe(2);
    expect(logged.some((message) => message.startsWith('warning'))).toBe(true);
    const pool = connect({ url: database.url, max: 2 });
    open.push({ close: () => pool.end({ timeout: 5 }) });
    const next = opened(pool, 'auto');
    expect(await found(next.index)).toBe(2);
    expect(next.logged).toEqual(['vector search of large collections uses pgvector']);
    expect(await sql`select 1 from memory_vectors_2`).toHaveLength(2);
  });

  it('compares points of more than 4,000 dimensions exactly', async () => {
    const long = pointOf(Float32Array.from({ length: 4_001 }, (_, at) => at % 7));
    await put(own, long);
    const { index } = opened(sql, 'auto');
    expect(await found(index, long)).toBe(1);
    expect(await tables()).toEqual(['memory_vector_copies']);
  });

  it('deletes points with their memories, and indexes with their collections', async () => {
    const { workspaceId, userId: createdByUserId } = viewer;
    const team = await createMemoryCollection(sql, {
      workspaceId,
      type: 'team',
      name: 'team',
      createdByUserId,
      now: NOW,
    });
    await put(team);
    const first = opened(sql, 'auto');
    expect(await found(first.index)).toBe(1);
    expect(await indexes()).toHaveLength(1);
    await deleteMemoryCollection(sql, viewer, { id: team.id, now: NOW });
    expect(await sql`select 1 from memory_vectors_2`).toHaveLength(0);
    await opened(sql, 'auto').index.chosen;
    expect(await indexes()).toEqual([]);
  });

  it('rebuilds an interrupted index, and cancels a build when its node closes', async () => {
    await put(own);
    const held = await sql.reserve();
    // `create index concurrently` waits for older transactions.
    await held.unsafe('begin isolation level repeatable read; select 1');
    const first = opened(sql, 'auto', 100);
    await first.index.chosen;
    expect(await found(first.index)).toBe(1);
    await eventually(async () => expect(await indexes()).toEqual([{ valid: false }]));
    await first.index.close();
    await held.unsafe('rollback');
    held.release();
    const second = opened(sql, 'auto');
    expect(await found(second.index)).toBe(1);
    expect(await indexes()).toEqual([{ valid: true }]);
  });

  async function put(collection: MemoryCollectionRow, bytes = QUERY): Promise<void> {
    const memory = await remember(sql, collection);
    expect(await process(sql, memory, { units: [chunk('text', { embedder: EMBEDDER, bytes })] })).toBe(true);
  }

  async function found(index: ReturnType<typeof openVectorIndex>, query = QUERY): Promise<number> {
    await index.chosen;
    const collections = await collectionsToSearch(sql, viewer, {});
    const { nearest } = await index.search({ collections, query, limit: 10, among: null, signal: SIGNAL });
    return nearest.length;
  }

  async function tables(): Promise<string[]> {
    const rows = await sql<{ name: string }[]>`
      select relname as name from pg_class where relkind = 'r' and relname like 'memory_vector%' order by relname`;
    return rows.map(({ name }) => name);
  }

  async function indexes(): Promise<{ valid: boolean }[]> {
    return [
      ...(await sql<{ valid: boolean }[]>`
        select indisvalid as valid from pg_index join pg_class on pg_class.oid = indexrelid
        join pg_am on pg_am.oid = relam where amname = 'hnsw'`),
    ];
  }
});
