import { describe, expect, it, onTestFinished } from 'vitest';
import { keepMakingPoints, makeMissingPoints } from '../../actors/memory/missing-points.ts';
import type { Embedder } from '../../language/memory/embedder.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { deleteMemory } from '../../storage/queries/memories.ts';
import { removedUnits } from '../../storage/queries/memory-search.ts';
import { chunk, process, remember, seedMemories } from '../storage/memory-fixture.ts';
import { later, NOW } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { createTestLogger } from './fakes.ts';

const SIGNAL = new AbortController().signal;

describe('missing embeddings', () => {
  it('embeds missing chunks once, including those of other embedders', async () => {
    const { sql, units, pointed } = await seeded();
    await units('one', 'two', 'three');
    await sql`update memory_units set embedder = 'older', embedding = '\\x01' where text = 'two'`;
    const embedder = embedderOf();
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(3);
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(0);
    expect(await pointed()).toEqual(['one', 'three', 'two']);
  });

  it('skips texts that the server rejects', async () => {
    const { sql, units, pointed } = await seeded();
    await units('poison', 'good', 'better');
    expect(await makeMissingPoints({ sql, embedder: embedderOf(/poison/) }, SIGNAL)).toBe(2);
    expect(await pointed()).toEqual(['better', 'good']);
  });

  it('stops until the next round while the server is away', async () => {
    const { sql, units } = await seeded();
    await units('one', 'two', 'three');
    const embedder = embedderOf(/./);
    await expect(makeMissingPoints({ sql, embedder }, SIGNAL)).rejects.toThrow('no');
    expect(embedder.asked).toBe(2);
    await expect(makeMissingPoints({ sql, embedder }, AbortSignal.abort(new Error('enough')))).rejects.toThrow(
      'enough',
    );
  });

  it('continues after an interruption, without embedding anything twice', async () => {
    const { sql, units, pointed } = await seeded();
    await units('one', 'two', 'three', 'four');
    await sql`update memory_units set embedder = 'older', embedding = '\\x01'`;
    const embedder = embedderOf();
    const stopping = new AbortController();
    const rest = async () => {
      if (embedder.asked === 2) stopping.abort(new Error('the server stops'));
    };
    await expect(makeMissingPoints({ sql, embedder, rest }, stopping.signal)).rejects.toThrow('the server stops');
    expect(await pointed()).toHaveLength(2);
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(2);
    expect(await pointed()).toHaveLength(4);
    expect(embedder.asked).toBe(4);
  });

  it('pauses after each batch, in proportion to its duration', async () => {
    const { sql, units } = await seeded();
    await units('one', 'two', 'three');
    const rests: number[] = [];
    const rest = async (workedMs: number) => void rests.push(workedMs);
    await makeMissingPoints({ sql, embedder: embedderOf(), rest }, SIGNAL);
    expect(rests).toHaveLength(3);
    for (const workedMs of rests) expect(workedMs).toBeGreaterThan(0);
  });

  it('stops pausing when closed', async () => {
    const { sql, units, pointed } = await seeded();
    await units('one', 'two');
    const resting = Promise.withResolvers<void>();
    const clock: Clock = { ...systemClock, setTimeout: () => resting.resolve(), clearTimeout() {} };
    const points = keepMakingPoints({ sql, embedder: embedderOf(), logger: createTestLogger(), clock });
    await resting.promise;
    await points.close();
    expect(await pointed()).toHaveLength(1);
  });

  it('embeds in the background from the start, and removes old deletion records', async () => {
    const { sql, viewer, collection, units, pointed } = await seeded();
    await units('one');
    const gone = await remember(sql, collection);
    await deleteMemory(sql, viewer, { id: gone.id, now: NOW });
    const logged = Promise.withResolvers<object>();
    const logger = { ...createTestLogger(), info: logged.resolve };
    const clock: Clock = { ...systemClock, now: () => later(2 * 86_400_000).getTime() };
    const points = keepMakingPoints({ sql, embedder: embedderOf(), logger, clock });
    onTestFinished(() => points.close());
    expect(await logged.promise).toEqual({ units: 1 });
    await points.close();
    expect(await pointed()).toEqual(['one']);
    expect(await removedUnits(sql, { collectionId: collection.id, after: 0n, until: 99n })).toBeNull();
  });
});

/** Embeds one text per request, and rejects matching ones. */
function embedderOf(refused?: RegExp): Embedder & { asked: number } {
  return {
    name: 'counting-1',
    dimensions: 1,
    batchSize: 1,
    typicalCosine: 0.1,
    leastEvidence: 0.05,
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
