import { loadavg } from 'node:os';
import { createPointSource } from '../actors/memory/recall-store.ts';
import { createPgvectorTable } from '../actors/memory/vector-table.ts';
import { createOfflineEmbedder } from '../language/memory/embedder-offline.ts';
import { pointOf } from '../language/memory/point.ts';
import { createTableIndex } from '../language/memory/table-index.ts';
import { createVectorIndex, type VectorIndex } from '../language/memory/vector-index.ts';
import type { Sql } from '../storage/database.ts';
import { ensurePersonalCollection } from '../storage/queries/memory-collections.ts';
import { collectionsToSearch } from '../storage/queries/memory-search.ts';
import { preparePgvector } from '../storage/queries/memory-vectors.ts';
import { hasPgvector } from '../test/storage/pgvector.ts';
import { seedWorkspace } from '../test/storage/seed.ts';
import { externalServer } from '../test/storage/test-database.ts';
import { createTexts, fillCollection } from './memory-corpus.ts';

const SEARCHES = 200;
/** As recall asks for. */
const LIMIT = 200;
const JUDGED = 20;
const SIGNAL = new AbortController().signal;
const LOGGER = { warn: (fields: object, message: string) => console.error(message, fields) };

/**
 * Searches by meaning among `size` memories: pgvector compared with the thread that compares all points, on the same
 * data at TANDEM_TEST_DATABASE_URL, and how many of the 20 nearest pgvector finds. Skipped without pgvector.
 */
export async function measureIndexes(size: number): Promise<void> {
  if (!hasPgvector) {
    console.log('the server at TANDEM_TEST_DATABASE_URL, if there is one, has no pgvector: it was not measured');
    return;
  }
  const server = externalServer();
  const database = await server.createDatabase();
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql);
  const viewer = { workspaceId: workspace.id, userId: user.id, role: 'owner' } as const;
  const collection = await ensurePersonalCollection(sql, { ...viewer, now: new Date() });
  const texts = createTexts(2);
  const all = Array.from({ length: size }, () => texts.next());
  await fillCollection(sql, { collection, texts: all });
  const queries = await queriesFrom(all, texts.random);
  const collections = await collectionsToSearch(sql, viewer, {});

  const thread = createVectorIndex({
    source: createPointSource(sql, { embedder: createOfflineEmbedder().name }),
    logger: LOGGER,
  });
  const table = await openTable(sql, thread);
  console.log(`among ${size} points, by meaning alone, the nearest ${LIMIT}, ${load()}`);
  const exact = await measure(thread);
  print('compared in the thread (reference)', exact);
  const looked = await measure(table);
  print('looked up with pgvector', looked);
  let found = 0;
  for (const [at, nearest] of looked.answers.entries()) {
    const last = exact.answers[at]!.slice(0, JUDGED).at(-1)!;
    found += nearest.slice(0, JUDGED).filter((cosine) => cosine >= last - 1e-6).length;
  }
  const recall = ((100 * found) / (JUDGED * queries.length)).toFixed(1);
  console.log(`  of the ${JUDGED} nearest pgvector finds ${recall} %; ${load()}`);
  await table.close();
  await database.drop();
  await server.close();

  async function measure(index: VectorIndex): Promise<{ firstMs: number; times: number[]; answers: number[][] }> {
    const times: number[] = [];
    const answers: number[][] = [];
    const startedMs = performance.now();
    const search = (query: Uint8Array) =>
      index.search({ collections, query, limit: LIMIT, among: null, signal: SIGNAL });
    await search(queries[0]!);
    const firstMs = performance.now() - startedMs;
    for (const query of queries) {
      const searchMs = performance.now();
      const { nearest } = await search(query);
      times.push(performance.now() - searchMs);
      answers.push(nearest.map(({ cosine }) => cosine));
    }
    return { firstMs, times: times.sort((a, b) => a - b), answers };
  }

  function print(name: string, { firstMs, times }: { firstMs: number; times: number[] }): void {
    const of = (percent: number) => times[Math.floor((times.length * percent) / 100)]!.toFixed(1).padStart(7);
    const ratio = (times[times.length >> 1]! / exact.times[exact.times.length >> 1]!).toFixed(1);
    const first = (firstMs / 1000).toFixed(1);
    console.log(
      `  ${name.padEnd(36)} p50 ${of(50)} ms   p99 ${of(99)} ms   (p50 x${ratio})   made ready in ${first} s`,
    );
  }
}

/** Waits for the index, however long it takes to build. */
async function openTable(sql: Sql, exact: VectorIndex): Promise<VectorIndex> {
  await preparePgvector(sql);
  const table = createPgvectorTable(sql, { embedder: createOfflineEmbedder().name });
  return createTableIndex({ table, exact, fromUnits: 1, waitMs: Number.POSITIVE_INFINITY, logger: LOGGER });
}

/** Some words of an existing text. */
async function queriesFrom(texts: readonly string[], random: () => number): Promise<Uint8Array[]> {
  const embedder = createOfflineEmbedder();
  const queries = Array.from({ length: SEARCHES }, () => {
    const words = texts[Math.floor(random() * texts.length)]!.split(' ');
    return words.slice(0, 3 + Math.floor(random() * 4)).join(' ');
  });
  return (await embedder.embed(queries, SIGNAL)).map(pointOf);
}

function load(): string {
  return `load ${loadavg()[0]!.toFixed(1)}`;
}
