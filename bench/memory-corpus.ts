import { randomUUID } from 'node:crypto';
import { createOfflineEmbedder } from '../language/memory/embedder-offline.ts';
import { makePoints } from '../language/memory/make-points.ts';
import type { Sql } from '../storage/database.ts';
import type { MemoryCollectionRow } from '../storage/queries/memory-collections.ts';

const VOCABULARY = 30_000;
const BATCH = 2_000;
const SIGNAL = new AbortController().signal;

/**
 * Reproducible texts of made-up words with a natural distribution (Zipf). Only for measuring speed, because they mean
 * nothing.
 */
export function createTexts(seed: number): { next(): string; random(): number } {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const words = Array.from({ length: VOCABULARY }, () =>
    Array.from({ length: 2 + Math.floor(random() * 3) }, () => syllable(random)).join(''),
  );
  return {
    random,
    next() {
      const length = 25 + Math.floor(random() * 40);
      // Approximate inverse of a sum of 1/rank.
      return Array.from({ length }, () => words[Math.floor(VOCABULARY ** random()) - 1]!).join(' ');
    },
  };
}

/**
 * Inserts memories in bulk as if they had been ingested and processed, because one by one takes minutes. Call once per
 * collection.
 */
export async function fillCollection(
  sql: Sql,
  { collection, texts }: { collection: MemoryCollectionRow; texts: readonly string[] },
): Promise<void> {
  const embedder = createOfflineEmbedder();
  for (let start = 0; start < texts.length; start += BATCH) {
    const batch = texts.slice(start, start + BATCH);
    const points = await makePoints(embedder, {
      texts: batch.map((text) => ({ heading: null, text })),
      signal: SIGNAL,
    });
    const rows = batch.map((text, index) => ({
      id: randomUUID(),
      text,
      number: start + index,
      embedding: Buffer.from(points[index]!.bytes).toString('base64'),
    }));
    await sql`
      with given as (
        select * from jsonb_to_recordset(${sql.json(rows)}) as row (id uuid, text text, number int, embedding text)
      ), made as (
        insert into memories (id, workspace_id, collection_id, user_id, content, metadata, infer, status, processed_as,
          content_hash, characters, created_at, updated_at, ready_at)
        select id, ${collection.workspaceId}, ${collection.id}, ${collection.createdByUserId}, text,
          jsonb_build_object('number', number, 'parity', number % 2), false, 'ready', 'chunks',
          sha256(text::bytea), length(text), now(), now(), now()
        from given
      )
      insert into memory_units (collection_id, memory_id, kind, position, text, terms, embedder, embedding, revision)
      select ${collection.id}, id, 'chunk', 0, text, memory_terms(null, null, text), ${embedder.name},
        decode(embedding, 'base64'), 1 from given`;
  }
  await sql`delete from memory_words where collection_id = ${collection.id}`;
  await sql.unsafe(`
    insert into memory_words (collection_id, word, units)
    select '${collection.id}', word, ndoc from ts_stat($$select terms from memory_units where collection_id = '${collection.id}'$$)`);
  await sql`
    update memory_collections set revision = revision + 1,
      units = (select count(*) from memory_units where collection_id = ${collection.id}) where id = ${collection.id}`;
  await sql`vacuum analyze memories, memory_units, memory_words`;
}

function syllable(random: () => number): string {
  return `${'bcdfghklmnprstvz'[Math.floor(random() * 16)]}${'aeiou'[Math.floor(random() * 5)]}`;
}
