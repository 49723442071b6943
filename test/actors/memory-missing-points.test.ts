import { describe, expect, it, onTestFinished } from 'vitest';
import { keepMakingPoints, makeMissingPoints } from '../../actors/memory/missing-points.ts';
import type { Embedder } from '../../language/memory/embedder.ts';
import { deleteMemory } from '../../storage/queries/memories.ts';
import { removedUnits } from '../../storage/queries/memory-search.ts';
import { chunk, process, remember, seedMemories } from '../storage/memory-fixture.ts';
import { later, NOW } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';

const SIGNAL = new AbortController().signal;

describe('points that are missing', () => {
  it('are made, those of other embedders too, and once', async () => {
    const { sql, units, pointed } = await seeded();
    await units('one', 'two', 'three');
    await sql`update memory_units set embedder = 'older', embedding = '\\x01' where text = 'two'`;
    const embedder = embedderOf();
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(3);
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(0);
    expect(await pointed()).toEqual(['one', 'three', 'two']);
  });

  it('of texts that the server does not take are passed over', async () => {
    const { sql, units, pointed } = await seeded();
    await units('poison', 'good', 'better');
    expect(await makeMissingPoints({ sql, embedder: embedderOf(/poison/) }, SIGNAL)).toBe(2);
    expect(await pointed()).toEqual(['better', 'good']);
  });

  it('are left for later when the server is not there', async () => {
    const { sql, units } = await seeded();
    await units('one', 'two', 'three');
    const embedder = embedderOf(/./);
    await expect(makeMissingPoints({ sql, embedder }, SIGNAL)).rejects.toThrow('no');
    expect(embedder.asked).toBe(2);
    await expect(makeMissingPoints({ sql, embedder }, AbortSignal.abort(new Error('enough')))).rejects.toThrow(
      'enough',
    );
  });

  it('are made from the start in the background, and old removals forgotten', async () => {
    const { sql, viewer, collection, units, pointed } = await seeded();
    await units('one');
    const gone = await remember(sql, collection);
    await deleteMemory(sql, viewer, { id: gone.id, now: NOW });
    const told = Promise.withResolvers<object>();
    const logger = { info: (fields: object) => told.resolve(fields) } as never;
    const points = keepMakingPoints({ sql, embedder: embedderOf(), logger, now: () => later(2 * 86_400_000) });
    onTestFinished(() => points.close());
    expect(await told.promise).toEqual({ units: 1 });
    await points.close();
    expect(await pointed()).toEqual(['one']);
    expect(await removedUnits(sql, { collectionId: collection.id, after: 0n, until: 99n })).toBeNull();
  });
});

/** One text at a time; refuses those that match. */
function embedderOf(refused?: RegExp): Embedder & { asked: number } {
  return {
    name: 'counting-1',
    dimensions: 1,
    batchSize: 1,
    asked: 0,
    async embed(texts) {
      this.asked += 1;
      if (texts.some((text) => refused?.test(text))) throw new Error('no');
      return texts.map(() => Float32Array.from([1]));
    },
  };
}

async function seeded() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { sql } = database;
  const { viewer, collection } = await seedMemories(sql);
  return {
    sql,
    viewer,
    collection,
    async units(...texts: string[]) {
      const memory = await remember(sql, collection);
      await process(sql, memory, { units: texts.map((text) => chunk(text)) });
    },
    async pointed() {
      const rows = await sql<
        { text: string }[]
      >`select text from memory_units where embedder = 'counting-1' order by text`;
      return rows.map(({ text }) => text);
    },
  };
}
