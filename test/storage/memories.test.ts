import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { deleteMemory, findMemory, insertMemories } from '../../storage/queries/memories.ts';
import { nextRevision } from '../../storage/queries/memory-collections.ts';
import { listMemoryHeads } from '../../storage/queries/memory-heads.ts';
import {
  claimMemory,
  dueMemories,
  failMemory,
  finishMemory,
  lockAttempt,
  postponeMemory,
  retryMemory,
  setMemoryStage,
} from '../../storage/queries/memory-processing.ts';
import { addedPoints, removedUnits } from '../../storage/queries/memory-search.ts';
import {
  forgetUnitRemovals,
  setUnitPoints,
  unitsWithoutPoint,
  wholeUnits,
} from '../../storage/queries/memory-units.ts';
import { eventually } from '../eventually.ts';
import { onEveryServer } from './every-server.ts';
import { lockWaits } from './lock-waits.ts';
import { chunk, conclude, getMemory, newMemory, process, remember, seedMemories } from './memory-fixture.ts';
import { later, NOW } from './seed.ts';

const LEASE_MS = 60_000;
const POINT = { embedder: 'test-1', bytes: new Uint8Array([1, 2, 255]) };

onEveryServer('memories', (database) => {
  it('keep their content, except for characters that Postgres rejects', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const metadata = { 'nul\0': 'a\0b', deep: [{ lone: 'x\ud800' }], __proto__x: 1, n: 1.5, none: null };
    const memory = await remember(sql, collection, {
      title: 'Ti\0tle',
      content: 'NUL\0 and \udfff and e\u0301',
      metadata: JSON.parse(JSON.stringify({ ...metadata, ['__proto__']: undefined })),
      source: { name: 'a.pdf', pages: 3 },
    });
    expect(await findMemory(sql, viewer, memory.id.toUpperCase())).toMatchObject({
      title: 'Title',
      content: 'NUL and \ufffd and \u00e9',
      metadata: { nul: 'ab', deep: [{ lone: 'x\ufffd' }], n: 1.5, none: null },
      source: { name: 'a.pdf', pages: 3 },
      status: 'pending',
      attempts: 0,
      collectionLabel: 'Personal',
    });
  });

  it('fail with excessively nested metadata', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const nested = (depth: number) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
    await expect(remember(sql, collection, { metadata: { a: nested(4_000) } })).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
    });
    await expect(remember(sql, collection, { metadata: { a: nested(60) } })).resolves.toMatchObject({
      status: 'pending',
    });
  });

  it('disappear when the charging transaction fails', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const memory = newMemory(collection);
    const failing = inTransaction(sql, async (tx) => {
      await insertMemories(tx, [memory]);
      throw new Error('no money');
    });
    await expect(failing).rejects.toThrow('no money');
    expect(await getMemory(sql, memory.id)).toBeNull();
    expect(await sql`select 1 from memory_words`).toHaveLength(0);
  });

  it('appear newest first, by page, collection, type and status', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const made = [];
    for (const at of [0, 1, 2]) made.push(await remember(sql, collection, { now: later(at) }));
    await process(sql, made[0]!, {});
    const ids = async (query: object) =>
      (await listMemoryHeads(sql, viewer, { page: 1, limit: 2, ...query })).rows.map(({ id }) => id);
    expect(await ids({})).toEqual([made[2]!.id, made[1]!.id]);
    expect(await ids({ page: 2 })).toEqual([made[0]!.id]);
    expect(await ids({ status: 'ready' })).toEqual([made[0]!.id]);
    expect(await ids({ type: 'hive' })).toEqual([]);
    expect(await ids({ collectionId: collection.id, page: 2 })).toEqual([made[0]!.id]);
    expect((await listMemoryHeads(sql, viewer, { page: 9, limit: 2 })).total).toBe(3);
  });

  it('belong to one worker at a time, until its lease expires', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const { id } = await remember(sql, collection);
    const claim = (ms: number) => claimMemory(sql, { id, now: later(ms), leaseMs: LEASE_MS });
    const claims = await Promise.all([claim(0), claim(0), claim(0)]);
    expect(claims.filter((claimed) => claimed !== null)).toHaveLength(1);
    expect(await dueMemories(sql, { now: later(LEASE_MS - 1), limit: 9 })).toEqual([]);
    expect(await claim(LEASE_MS - 1)).toBeNull();
    expect(await dueMemories(sql, { now: later(LEASE_MS), limit: 9 })).toMatchObject([{ id, attempts: 1 }]);
    expect(await claim(LEASE_MS)).toMatchObject({ status: 'processing', attempts: 2 });
  });

  it('neither wait for the time by which a clock is ahead nor become due early', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const ahead = new Date(Date.now() + 3_600_000);
    const { id } = await remember(sql, collection, { now: ahead });
    // The hour is left out, and two minutes are enough for this test.
    const soon = () => Date.now() + 2 * LEASE_MS;
    expect(await dueMemories(sql, { now: new Date(), limit: 9 })).toMatchObject([{ id }]);
    const claimed = await claimMemory(sql, { id, now: ahead, leaseMs: LEASE_MS });
    expect(claimed!.leasedUntil!.getTime()).toBeLessThan(soon());
    expect(await claimMemory(sql, { id, now: ahead, leaseMs: LEASE_MS })).toBeNull();

    const attempt = { id, attempt: 1 };
    await setMemoryStage(sql, attempt, { stage: 'chunking', now: ahead, leaseMs: LEASE_MS });
    expect((await getMemory(sql, id))!.leasedUntil!.getTime()).toBeLessThan(soon());
    const nextAttemptAt = new Date(ahead.getTime() + LEASE_MS);
    await postponeMemory(sql, attempt, { code: 'X', message: 'x', nextAttemptAt, now: ahead });
    expect((await getMemory(sql, id))!.nextAttemptAt!.getTime()).toBeLessThan(soon());
    expect(await dueMemories(sql, { now: ahead, limit: 9 })).toEqual([]);
    expect(await claimMemory(sql, { id, now: ahead, leaseMs: LEASE_MS })).toBeNull();
  });

  it('ignore an attempt that another one overtook', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const { id } = await remember(sql, collection);
    await claimMemory(sql, { id, now: NOW, leaseMs: LEASE_MS });
    const second = (await claimMemory(sql, { id, now: later(LEASE_MS), leaseMs: LEASE_MS }))!;
    const lost = { id, attempt: 1 };
    const why = { code: 'X', message: 'x', now: NOW };
    expect(await setMemoryStage(sql, lost, { stage: 'chunking', now: NOW, leaseMs: 1 })).toBe(false);
    expect(await postponeMemory(sql, lost, { ...why, nextAttemptAt: NOW })).toBe(false);
    await inTransaction(sql, async (tx) => {
      expect(await lockAttempt(tx, lost)).toBeNull();
      expect(await finishMemory(tx, lost, { processedAs: 'chunks', now: NOW })).toBe(false);
      expect(await failMemory(tx, lost, why)).toBeNull();
    });
    expect(await getMemory(sql, id)).toEqual(second);
  });

  it('report progress, wait for another attempt, fail, and retry on request only', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const { id } = await remember(sql, collection);
    await claimMemory(sql, { id, now: NOW, leaseMs: LEASE_MS });
    expect(await setMemoryStage(sql, { id, attempt: 1 }, { stage: 'embedding', now: later(9), leaseMs: 100 })).toBe(
      true,
    );
    expect(await getMemory(sql, id)).toMatchObject({ stage: 'embedding', leasedUntil: later(109) });
    const why = { code: 'MEMORY_UNREACHABLE', message: 'No\0 answer', now: later(10) };
    expect(await postponeMemory(sql, { id, attempt: 1 }, { ...why, nextAttemptAt: later(500) })).toBe(true);
    expect(await getMemory(sql, id)).toMatchObject({ status: 'processing', leasedUntil: null, error: 'No answer' });
    expect(await claimMemory(sql, { id, now: later(499), leaseMs: LEASE_MS })).toBeNull();
    await claimMemory(sql, { id, now: later(500), leaseMs: LEASE_MS });
    await inTransaction(sql, (tx) => failMemory(tx, { id, attempt: 2 }, why));
    expect(await dueMemories(sql, { now: later(9_999_999), limit: 9 })).toEqual([]);
    expect(await inTransaction(sql, (tx) => retryMemory(tx, { id, now: later(600) }))).toMatchObject({
      status: 'pending',
      errorCode: null,
      attempts: 2,
    });
    expect(await inTransaction(sql, (tx) => retryMemory(tx, { id, now: later(600) }))).toBeNull();
  });

  it('maintain exact word counts', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const first = await remember(sql, collection, { content: 'Tea and coffee' });
    const second = await remember(sql, collection, { content: 'Coffee' });
    expect(await countOf(sql, 'coffe')).toBe(2);
    await process(sql, first, { units: [chunk('Coffee'), chunk('Coffee beans'), chunk('Tea')] });
    expect([await countOf(sql, 'coffe'), await countOf(sql, 'bean'), await unitsOf(sql)]).toEqual([3, 1, 4]);
    await deleteMemory(sql, viewer, { id: first.id, now: NOW });
    expect([await countOf(sql, 'coffe'), await countOf(sql, 'bean'), await unitsOf(sql)]).toEqual([1, 0, 1]);
    await deleteMemory(sql, viewer, { id: second.id, now: NOW });
    expect(await wordsIn(sql)).toEqual([]);
  });

  it('leave no content behind when deleted', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const memory = await remember(sql, collection, {
      title: 'Secret',
      metadata: { a: 'secret' },
      source: { name: 's' },
    });
    expect(await deleteMemory(sql, viewer, { id: memory.id, now: NOW })).toEqual({ revived: [] });
    expect(await deleteMemory(sql, viewer, { id: memory.id, now: NOW })).toBeNull();
    expect(await getMemory(sql, memory.id)).toBeNull();
    expect(await claimMemory(sql, { id: memory.id, now: NOW, leaseMs: LEASE_MS })).toBeNull();
    const [row] = await sql`
      select title, content, encode(content_hash, 'hex') as hash, metadata, source, next_attempt_at
      from memories where id = ${memory.id}`;
    // A hash would reveal a short text by brute force.
    expect(row).toEqual({ title: null, content: '', hash: '', metadata: {}, source: null, nextAttemptAt: null });
    expect(await sql`select 1 from memory_units`).toHaveLength(0);
  });

  it('reappear when the original of a duplicate is deleted', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const first = await remember(sql, collection);
    await process(sql, first, { units: [chunk('Asha lives in Mumbai.')] });
    const second = await remember(sql, collection, { now: later(1) });
    const claimed = (await claimMemory(sql, { id: second.id, now: later(1), leaseMs: LEASE_MS }))!;
    await inTransaction(sql, async (tx) => {
      await conclude(tx, claimed, {});
      await tx`update memories set deduplicated_into = ${first.id} where id = ${second.id}`;
    });
    expect(await deleteMemory(sql, viewer, { id: first.id, now: later(2) })).toEqual({ revived: [second.id] });
    expect(await getMemory(sql, second.id)).toMatchObject({ status: 'pending', deduplicatedInto: null });
    expect(await countOf(sql, 'mumbai')).toBe(1);
  });

  it('never deadlock, for any order of changes', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const memories = await Promise.all(Array.from({ length: 12 }, () => remember(sql, collection)));
    await Promise.all(
      memories.map(async (memory, index) => {
        if (index % 3 === 0) await deleteMemory(sql, viewer, { id: memory.id, now: NOW });
        else await process(sql, memory, { units: [chunk('Tea'), chunk('Coffee')] });
        await remember(sql, collection, { content: 'Tea' });
      }),
    );
    expect([await countOf(sql, 'tea'), await unitsOf(sql)]).toEqual([20, 28]);
  });
});

onEveryServer('memory points', (database) => {
  it('appear once with their revision, even for readers concurrent to writers', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const seen = new Set<bigint>();
    let after = 0n;
    const writing = Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const memory = await remember(sql, collection);
        await process(sql, memory, { units: [chunk(`a ${index}`, POINT), chunk('b', POINT)] });
      }),
    );
    let isOver = false;
    const over = writing.then(() => {
      isOver = true;
    });
    for (let last = false; !last; ) {
      last = isOver;
      const [row] = await sql<
        { revision: bigint }[]
      >`select revision from memory_collections where id = ${collection.id}`;
      const span = { collectionId: collection.id, after, until: row!.revision, embedder: POINT.embedder };
      for (const { unitId } of await addedPoints(sql, { ...span, afterUnitId: 2n ** 62n, limit: 1_000 })) {
        expect(seen.has(unitId)).toBe(false);
        seen.add(unitId);
      }
      after = row!.revision;
    }
    await over;
    expect(seen.size).toBe(40);
  });

  it('arrive in pages with unchanged bytes', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const memory = await remember(sql, collection);
    const units = Array.from({ length: 5 }, (_, at) => chunk('x', { ...POINT, bytes: new Uint8Array([at, 128, 255]) }));
    await process(sql, memory, { units });
    const span = { collectionId: collection.id, until: 99n, embedder: POINT.embedder, limit: 3 };
    const first = await addedPoints(sql, { ...span, after: -1n, afterUnitId: 0n });
    const last = first.at(-1)!;
    const second = await addedPoints(sql, { ...span, after: last.revision, afterUnitId: last.unitId });
    expect([...first, ...second].map(({ bytes }) => [...bytes])).toEqual([0, 1, 2, 3, 4].map((at) => [at, 128, 255]));
    expect(await addedPoints(sql, { ...span, embedder: 'other', after: -1n, afterUnitId: 0n })).toEqual([]);
  });

  it('get missing embeddings, which appear as changes', async () => {
    const { sql, collection } = await seedMemories(database().sql);
    const memory = await remember(sql, collection);
    await process(sql, memory, {
      units: [chunk('none'), chunk('other', { ...POINT, embedder: 'old' }), chunk('new', POINT)],
    });
    await remember(sql, collection, { content: 'not processed yet' });
    const missing = await unitsWithoutPoint(sql, { embedder: POINT.embedder, after: 0n, limit: 9 });
    expect(missing.map(({ text }) => text)).toEqual(['none', 'other']);
    const revision = await inTransaction(sql, async (tx) => {
      const next = (await nextRevision(tx, collection.id))!;
      const points = [...missing.map(({ id }) => ({ id, ...POINT })), { id: 999_999n, ...POINT }];
      await setUnitPoints(tx, { collectionId: collection.id, points, revision: next });
      return next;
    });
    const span = { collectionId: collection.id, after: revision - 1n, until: revision, embedder: POINT.embedder };
    const reported = await addedPoints(sql, { ...span, afterUnitId: 2n ** 62n, limit: 9 });
    expect(reported.map(({ unitId }) => unitId)).toEqual(missing.map(({ id }) => id));
    expect(await unitsWithoutPoint(sql, { embedder: POINT.embedder, after: 0n, limit: 9 })).toEqual([]);
  });

  it('report removals until these are forgotten', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const memory = await remember(sql, collection);
    await deleteMemory(sql, viewer, { id: memory.id, now: NOW });
    const removed = (after: bigint) => removedUnits(sql, { collectionId: collection.id, after, until: 99n });
    expect(await removed(1n)).toHaveLength(1);
    expect(await removed(2n)).toEqual([]);
    expect(await forgetUnitRemovals(sql, { before: NOW, limit: 9 })).toBe(0);
    expect(await forgetUnitRemovals(sql, { before: later(1), limit: 9 })).toBe(1);
    expect(await removed(1n)).toBeNull();
    expect(await removed(2n)).toEqual([]);
    expect(await removedUnits(sql, { collectionId: randomUUID(), after: 0n, until: 1n })).toBeNull();
  });

  it('forget removals consistently while a collection is deleted', async () => {
    const { sql, viewer, collection } = await seedMemories(database().sql);
    const { id } = await remember(sql, collection);
    await deleteMemory(sql, viewer, { id, now: NOW });
    let forgotten: Promise<number> | undefined;
    await inTransaction(sql, async (tx) => {
      await nextRevision(tx, collection.id);
      forgotten = forgetUnitRemovals(sql, { before: later(1), limit: 9 });
      await eventually(async () => expect(await lockWaits(sql)).toBe(1));
      await tx`delete from memory_unit_removals where collection_id = ${collection.id}`;
    });
    expect(await forgotten).toBe(0);
  });
});

it('cuts a long text into units that join to the text', () => {
  const text = `${'word '.repeat(10_000)}${'x'.repeat(30_000)}`;
  const units = wholeUnits(text);
  expect(units.map((unit) => unit.text).join('')).toBe(text);
  expect(Math.max(...units.map((unit) => unit.text.length))).toBeLessThanOrEqual(12_000);
});

async function wordsIn(sql: Sql): Promise<string[]> {
  return (await sql<{ word: string }[]>`select word from memory_words order by word`).map(({ word }) => word);
}

async function countOf(sql: Sql, word: string): Promise<number> {
  const [row] = await sql<
    { units: number }[]
  >`select coalesce(sum(units), 0)::int as units from memory_words where word = ${word}`;
  return row!.units;
}

async function unitsOf(sql: Sql): Promise<number> {
  const [row] = await sql<{ units: number }[]>`select sum(units)::int as units from memory_collections`;
  return row!.units;
}
