import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { createPointSource, createRecallStore } from '../actors/memory/recall-store.ts';
import { createOfflineEmbedder } from '../language/memory/embedder-offline.ts';
import { makePoints } from '../language/memory/make-points.ts';
import { pointOf } from '../language/memory/point.ts';
import { createRecall } from '../language/memory/recall.ts';
import { createVectorIndex } from '../language/memory/vector-index.ts';
import { inTransaction, type Sql } from '../storage/database.ts';
import { insertMemories } from '../storage/queries/memories.ts';
import { ensurePersonalCollection, type MemoryCollectionRow } from '../storage/queries/memory-collections.ts';
import { keywordHits } from '../storage/queries/memory-keywords.ts';
import { claimMemory, finishMemory, lockAttempt } from '../storage/queries/memory-processing.ts';
import { parseKeywordQuery } from '../storage/queries/memory-query.ts';
import { collectionsToSearch } from '../storage/queries/memory-search.ts';
import { addUnits, removeUnitsOf } from '../storage/queries/memory-units.ts';
import { seedWorkspace } from '../test/storage/seed.ts';
import { openEmbeddedServer } from '../test/storage/test-database.ts';
import { createTexts, fillCollection } from './memory-corpus.ts';
import { measureIndexes } from './memory-index.ts';
import { QUESTIONS } from './memory-questions.ts';

/**
 * How much recall finds by words, by meaning and by both, compared with a plain full text search; ingestion rate; and
 * search time among 1,000, 10,000 and optionally 100,000 memories, compared with an `ilike` scan. Runs on the embedded
 * Postgres with the offline embedder. Search by meaning also runs on pgvector, if TANDEM_TEST_DATABASE_URL has it,
 * compared with comparing all points. Usage: node bench/memory.ts [most memories, default 10000]
 */

const SIZES = [1_000, 10_000, 100_000].filter((size) => size <= Number(process.argv[2] ?? 10_000));
const SEARCHES = 200;
const SCANS = 20;
const INGEST_MS = 3_000;
const SIGNAL = new AbortController().signal;
const TIMEOUT_MS = 30_000;
const MEASURED_RANKS = 5;

const server = await openEmbeddedServer();
await measureQuality();
await measureIngest();
for (const size of SIZES) await measureSearch(size);
await server.close();
for (const size of SIZES) await measureIndexes(size);

interface Bench {
  sql: Sql;
  collection: MemoryCollectionRow;
  /** Ids of memories, best first. */
  hybrid(query: string): Promise<string[]>;
  byWords(query: string): Promise<string[]>;
  byMeaning(query: string): Promise<string[]>;
  learn(text: string): Promise<string>;
  close(): Promise<void>;
}

async function openBench(): Promise<Bench> {
  const database = await server.createDatabase();
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql);
  const viewer = { workspaceId: workspace.id, userId: user.id, role: 'owner' } as const;
  const collection = await ensurePersonalCollection(sql, { ...viewer, now: new Date() });
  const embedder = createOfflineEmbedder();
  const logger = { warn: (fields: object, message: string) => console.error(message, fields) };
  const index = createVectorIndex({ source: createPointSource(sql, { embedder: embedder.name }), logger });
  const recall = createRecall({ store: createRecallStore(sql), embedder, index, timeoutMs: TIMEOUT_MS, logger });
  return {
    sql,
    collection,
    async hybrid(query) {
      const { results } = await recall({ viewer, query, limit: 10, conditions: [], isPlain: true, signal: SIGNAL });
      return results.map(({ memoryId }) => memoryId);
    },
    async byWords(text) {
      const query = parseKeywordQuery(text, { plain: true });
      const scope = { collectionIds: [collection.id], conditions: [] };
      const hits = await inTransaction(sql, (tx) =>
        keywordHits(tx, { ...scope, query, limit: 10, timeoutMs: TIMEOUT_MS }),
      );
      return hits.map(({ memoryId }) => memoryId);
    },
    async byMeaning(text) {
      const [embedding] = await embedder.embed([text], SIGNAL);
      const collections = await collectionsToSearch(sql, viewer, {});
      const query = pointOf(embedding!);
      const { nearest } = await index.search({ collections, query, limit: 10, among: null, signal: SIGNAL });
      return nearest.map(({ memoryId }) => memoryId);
    },
    learn: (text) => learn(sql, collection, text),
    async close() {
      await index.close();
      await database.drop();
    },
  };

  async function learn(sql: Sql, collection: MemoryCollectionRow, text: string): Promise<string> {
    const id = randomUUID();
    const now = new Date();
    const of = {
      id,
      workspaceId: collection.workspaceId,
      collectionId: collection.id,
      userId: user.id,
      apiKeyId: null,
    };
    const what = { title: null, content: text, metadata: {}, infer: false, source: null, characters: text.length, now };
    await inTransaction(sql, (tx) => insertMemories(tx, [{ ...of, ...what }]));
    const claimed = await claimMemory(sql, { id, now, leaseMs: 60_000 });
    const [point] = await makePoints(embedder, { texts: [{ heading: null, text }], signal: SIGNAL });
    const attempt = { id, attempt: claimed!.attempts };
    await inTransaction(sql, async (tx) => {
      const memory = (await lockAttempt(tx, attempt))!;
      const { revision } = memory;
      await removeUnitsOf(tx, { memoryId: id, collectionId: collection.id, revision, now });
      const units = [{ kind: 'chunk', text, heading: null, point: point! } as const];
      await addUnits(tx, { memory, units, revision });
      await finishMemory(tx, attempt, { processedAs: 'chunks', now });
    });
    return id;
  }
}

async function measureQuality(): Promise<void> {
  const bench = await openBench();
  const { sql } = bench;
  const ids: string[] = [];
  for (const [passage] of QUESTIONS) ids.push(await bench.learn(passage));
  const fullText = async (query: string): Promise<string[]> => {
    const rows = await sql<{ id: string }[]>`
      with asked as (select replace(plainto_tsquery('english', ${query})::text, '&', '|')::tsquery as query)
      select id from memories, asked where to_tsvector('english', content) @@ query
      order by ts_rank(to_tsvector('english', content), query) desc limit 10`;
    return rows.map(({ id }) => id);
  };
  const passages = QUESTIONS.map(([passage]) => passage);
  const paraphrases = QUESTIONS.map(([, question]) => question);
  const partly = passages.map((passage, at) => partlyRemembered(passage, at));
  console.log(`${passages.length} passages with a question that paraphrases each, written for this bench`);
  await compare(paraphrases);
  console.log('the same passages, by three of their words, one mistyped');
  await compare(partly);
  await bench.close();

  async function compare(queries: readonly string[]): Promise<void> {
    for (const [name, search] of [
      ['full text, any word, ts_rank (reference)', fullText],
      ['by words alone', bench.byWords],
      ['by meaning alone', bench.byMeaning],
      ['hybrid', bench.hybrid],
    ] as const) {
      let found = 0;
      let reciprocal = 0;
      for (const [at, query] of queries.entries()) {
        const rank = (await search(query)).indexOf(ids[at]!) + 1;
        if (rank > 0) reciprocal += 1 / rank;
        if (rank > 0 && rank <= MEASURED_RANKS) found += 1;
      }
      const recallAt5 = ((100 * found) / queries.length).toFixed(1);
      console.log(`  ${name.padEnd(42)} recall@5 ${recallAt5} %   MRR@10 ${(reciprocal / queries.length).toFixed(3)}`);
    }
  }
}

/** The third, fifth and seventh longest words; one has its second and third letter swapped. */
function partlyRemembered(passage: string, at: number): string {
  const longest = [...new Set(passage.match(/\p{L}+/gu))].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
  return [2, 4, 6]
    .map((place) => longest[Math.min(place, longest.length - 1)]!)
    .map((word, place) => (place === at % 3 ? `${word[0]}${word[2] ?? ''}${word[1] ?? ''}${word.slice(3)}` : word))
    .join(' ');
}

async function measureIngest(): Promise<void> {
  const bench = await openBench();
  const texts = createTexts(1);
  const rateOf = async (work: () => Promise<unknown>): Promise<number> => {
    let count = 0;
    const startedMs = performance.now();
    while (performance.now() - startedMs < INGEST_MS) {
      await work();
      count += 1;
    }
    return (1000 * count) / (performance.now() - startedMs);
  };
  await bench.sql`create table bare (id uuid primary key, text text not null)`;
  const reference = await rateOf(
    () => bench.sql`insert into bare ${bench.sql({ id: randomUUID(), text: texts.next() })}`,
  );
  const rate = await rateOf(() => bench.learn(texts.next()));
  const ratio = (reference / rate).toFixed(1);
  console.log(`taken in and processed, one after the other, ${loadText()}`);
  console.log(
    `  a bare insert of the text (reference) ${reference.toFixed(0)}/s   memories ${rate.toFixed(0)}/s (x${ratio})`,
  );
  await bench.close();
}

async function measureSearch(size: number): Promise<void> {
  const bench = await openBench();
  const texts = createTexts(2);
  const all = Array.from({ length: size }, () => texts.next());
  await fillCollection(bench.sql, { collection: bench.collection, texts: all });
  const queries = Array.from({ length: SEARCHES }, () =>
    queryFrom(all[Math.floor(texts.random() * size)]!, texts.random),
  );
  const startedMs = performance.now();
  await bench.hybrid(queries[0]!);
  console.log(
    `among ${size} memories, ${loadText()}; the first search ${(performance.now() - startedMs).toFixed(0)} ms`,
  );
  for (const query of queries.slice(0, 20)) await bench.hybrid(query);
  const scan = async (query: string) => {
    const words = query.split(' ').map((word) => `%${word}%`);
    await bench.sql`select id from memories where content ilike any(${words}) limit 10000`;
  };
  const reference = await timesOf(scan, queries.slice(0, SCANS));
  console.log(`  ${'scan with ilike (reference)'.padEnd(30)} ${figures(reference)}`);
  for (const [name, search] of [
    ['by words alone', bench.byWords],
    ['by meaning alone', bench.byMeaning],
    ['hybrid', bench.hybrid],
  ] as const) {
    const times = await timesOf(search, queries);
    const ratio = (percentile(times, 50) / percentile(reference, 50)).toFixed(2);
    console.log(`  ${name.padEnd(30)} ${figures(times)} (p50 x${ratio})`);
  }
  await bench.close();
}

/** Three to six words of a text; a fifth of them have two letters swapped. */
function queryFrom(text: string, random: () => number): string {
  const words = text.split(' ');
  return Array.from({ length: 3 + Math.floor(random() * 4) }, () => words[Math.floor(random() * words.length)]!)
    .map((word) => (random() < 0.2 ? `${word.slice(0, 2)}${word[3] ?? ''}${word[2] ?? ''}${word.slice(4)}` : word))
    .join(' ');
}

async function timesOf(search: (query: string) => Promise<unknown>, queries: readonly string[]): Promise<number[]> {
  const times: number[] = [];
  for (const query of queries) {
    const startedMs = performance.now();
    await search(query);
    times.push(performance.now() - startedMs);
  }
  return times.sort((a, b) => a - b);
}

function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]!;
}

function figures(sorted: readonly number[]): string {
  return `p50 ${percentile(sorted, 50).toFixed(1).padStart(7)} ms   p99 ${percentile(sorted, 99).toFixed(1).padStart(7)} ms`;
}

function loadText(): string {
  return `load ${loadavg()[0]!.toFixed(1)}`;
}
