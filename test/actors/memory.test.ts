import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MOST_MEMORY_ATTEMPTS, memoryBackoffMs } from '../../machines/memory.machine.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { eventually } from '../eventually.ts';
import { createMemoryFixture, LEASE_MS, type MemoryFixture, textOf } from './memory-fixture.ts';

const TEXT = 'Asha Rao moved to Mumbai in May. She likes tea.';
const COST = BigInt(TEXT.length) * 100n;

let fixture: MemoryFixture;
beforeEach(async () => {
  fixture = await createMemoryFixture();
});
afterEach(() => fixture[Symbol.asyncDispose]());

async function ingested(text = TEXT, more = {}): Promise<string> {
  const { results } = await fixture.desk.ingest({ memories: [textOf(text, more)], by: fixture.owner });
  const [first] = results;
  if (first?.outcome !== 'queued') throw new Error(`it was ${first?.outcome}`);
  return first.id;
}

const memory = (memoryId: string) => fixture.desk.get({ memoryId, by: fixture.owner });

async function unitsOf(memoryId: string): Promise<{ kind: string; text: string; embedder: string | null }[]> {
  return await fixture.sql`select kind, text, embedder from memory_units where memory_id = ${memoryId} order by kind, position`;
}

async function ledgerOf(): Promise<string[]> {
  const page = { page: 1, limit: 100 };
  const { rows } = await listUsage(fixture.sql, { workspaceId: fixture.owner.workspaceId }, page);
  return rows.map(({ operation, direction }) => `${direction} ${operation}`).toReversed();
}

/** Takes far longer than a sweep that finds nothing due. */
async function severalQueries(): Promise<void> {
  for (let query = 0; query < 20; query += 1) await fixture.sql`select 1`;
}

describe('a memory', () => {
  it('is charged and found by its words at once, and is ready after an attempt', async () => {
    const before = await fixture.balance();
    const id = await ingested();
    expect(await memory(id)).toMatchObject({ status: 'pending', text: TEXT, storedAs: null, attempts: 0 });
    expect(await unitsOf(id)).toEqual([{ kind: 'whole', text: TEXT, embedder: null }]);
    expect(await fixture.balance()).toBe(before - COST);
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({
      status: 'ready',
      stage: null,
      storedAs: 'chunks',
      attempts: 1,
      error: null,
    });
    expect(await unitsOf(id)).toEqual([{ kind: 'chunk', text: TEXT, embedder: 'fake-1' }]);
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('whose embeddings cannot be made is tried again, twice as late each time, and its words are found meanwhile', async () => {
    fixture.embedder.isAway = true;
    const id = await ingested();
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({
      status: 'processing',
      stage: 'embedding',
      attempts: 1,
      error: {
        code: 'MEMORY_UNREACHABLE',
        message: 'The embeddings server does not respond correctly. It will be retried automatically.',
      },
    });
    expect(await unitsOf(id)).toHaveLength(1);
    await fixture.pass(memoryBackoffMs(1) - 1);
    expect((await memory(id)).attempts).toBe(1);
    await fixture.pass(1);
    expect((await memory(id)).attempts).toBe(2);
    await fixture.pass(memoryBackoffMs(1));
    expect((await memory(id)).attempts).toBe(2);
    fixture.embedder.isAway = false;
    await fixture.pass(memoryBackoffMs(2));
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 3, error: null });
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('that fails for good is paid back with that, and says nothing of the server', async () => {
    const before = await fixture.balance();
    fixture.embedder.isAway = true;
    const id = await ingested();
    for (let attempt = 0; attempt <= MOST_MEMORY_ATTEMPTS; attempt += 1) await fixture.pass(600_000);
    const failed = await memory(id);
    expect(failed).toMatchObject({
      status: 'failed',
      attempts: MOST_MEMORY_ATTEMPTS,
      error: { code: 'MEMORY_UNREACHABLE' },
    });
    expect(failed.error!.message).toBe(
      'The embeddings server does not respond correctly. The charge was refunded. Retry when it does.',
    );
    expect(await fixture.balance()).toBe(before);
    expect(await ledgerOf()).toEqual(['debit ingest', 'refund ingest']);
    expect(await unitsOf(id)).toHaveLength(1);
  });

  it('that failed is charged and attempted anew when it is retried, as often as it fails', async () => {
    const before = await fixture.balance();
    fixture.embedder.isAway = true;
    const id = await ingested();
    const fail = async () => {
      for (let attempt = 0; attempt <= MOST_MEMORY_ATTEMPTS; attempt += 1) await fixture.pass(600_000);
    };
    await fail();
    const retried = await fixture.desk.retry({ memoryId: id, by: fixture.owner });
    expect(retried.memory).toMatchObject({ status: 'pending', error: null });
    expect(retried.charge.chargedNano).toBe(COST);
    await expect(fixture.desk.retry({ memoryId: id, by: fixture.owner })).rejects.toMatchObject({
      code: 'MEMORY_NOT_FAILED',
    });
    await fail();
    expect(await memory(id)).toMatchObject({ status: 'failed', attempts: 2 * MOST_MEMORY_ATTEMPTS });
    expect(await fixture.balance()).toBe(before);
    await fixture.desk.retry({ memoryId: id, by: fixture.owner });
    fixture.embedder.isAway = false;
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready' });
    expect(await fixture.balance()).toBe(before - COST);
    expect(await ledgerOf()).toEqual(['debit ingest', 'refund ingest', 'debit retry', 'refund retry', 'debit retry']);
  });

  it('is not retried by whom the wallet does not cover, and stays failed', async () => {
    fixture.embedder.isAway = true;
    const id = await ingested();
    for (let attempt = 0; attempt <= MOST_MEMORY_ATTEMPTS; attempt += 1) await fixture.pass(600_000);
    await fixture.sql`update accounts set balance_nano = 1 where kind = 'wallet'`;
    await expect(fixture.desk.retry({ memoryId: id, by: fixture.owner })).rejects.toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
    });
    expect((await memory(id)).status).toBe('failed');
  });

  it('whose node died is attempted by another when its lease is over, and nothing of it is there twice', async () => {
    const id = await ingested();
    const { promise: stuck, resolve } = Promise.withResolvers<void>();
    fixture.embedder.onEmbed = () => stuck;
    const reached = Promise.withResolvers<void>();
    fixture.embedder.onEmbed = () => {
      reached.resolve();
      return stuck;
    };
    const dying = fixture.worker.sweep();
    await reached.promise;
    const another = await fixture.anotherWorker();
    await another.sweep();
    expect(await memory(id)).toMatchObject({ status: 'processing', stage: 'embedding', attempts: 1 });
    fixture.time.ms += LEASE_MS + 1;
    fixture.embedder.onEmbed = async () => {};
    await another.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 2 });
    // The first one comes back to life, and is told that it is not its memory any more.
    resolve();
    await dying;
    expect(await unitsOf(id)).toHaveLength(1);
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 2 });
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('that ends the process each time fails in the end, and is paid back', async () => {
    const before = await fixture.balance();
    const id = await ingested();
    await fixture.sql`
      update memories set status = 'processing', attempts = ${MOST_MEMORY_ATTEMPTS}, leased_until = created_at where id = ${id}`;
    await fixture.pass(1);
    expect(await memory(id)).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
    expect(await fixture.balance()).toBe(before);
    expect(fixture.embedder.batches).toEqual([]);
  });

  it('that is deleted while it is processed leaves nothing behind but its cost', async () => {
    const id = await ingested();
    const reached = Promise.withResolvers<void>();
    const { promise: stuck, resolve } = Promise.withResolvers<void>();
    fixture.embedder.onEmbed = () => {
      reached.resolve();
      return stuck;
    };
    const attempting = fixture.worker.sweep();
    await reached.promise;
    await fixture.desk.remove({ memoryId: id, by: fixture.owner });
    resolve();
    await attempting;
    expect(await unitsOf(id)).toEqual([]);
    await expect(memory(id)).rejects.toMatchObject({ code: 'MEMORY_NOT_FOUND' });
    const [row] = await fixture.sql`select content, title, metadata from memories where id = ${id}`;
    expect(row).toEqual({ content: '', title: null, metadata: {} });
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('that the server stops working on is due at once for whoever starts next', async () => {
    const id = await ingested();
    const reached = Promise.withResolvers<void>();
    fixture.embedder.onEmbed = () => {
      reached.resolve();
      return new Promise(() => {});
    };
    void fixture.worker.sweep();
    await reached.promise;
    await fixture.worker.close();
    fixture.embedder.onEmbed = async () => {};
    const next = await fixture.anotherWorker();
    await next.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 2 });
  });

  it('is attempted when its job comes, and no more than a few at a time', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 12; index += 1) ids.push(await ingested(`Memory ${index} of twelve.`));
    let running = 0;
    let most = 0;
    const room = Promise.withResolvers<void>();
    fixture.embedder.onEmbed = async () => {
      running += 1;
      most = Math.max(most, running);
      if (running === 4) room.resolve();
      await room.promise;
      // A fifth would arrive meanwhile, if one might.
      await severalQueries();
      running -= 1;
    };
    await Promise.all(ids.map((id) => fixture.queue.deliver(id)));
    await eventually(async () => {
      for (const id of ids) expect((await memory(id)).status).toBe('ready');
    });
    expect(most).toBe(4);
  });
});

describe('a sweep', () => {
  it('attempts everything that is due, a few at a time', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 9; index += 1) ids.push(await ingested(`Memory ${index} of nine.`));
    fixture.embedder.onEmbed = severalQueries;
    await fixture.worker.sweep();
    for (const id of ids) expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 1 });
  });

  it('waits for an attempt that an earlier sweep began', async () => {
    const reached = Promise.withResolvers<void>();
    const first = await ingested('The first memory.');
    fixture.embedder.onEmbed = async () => {
      reached.resolve();
      await severalQueries();
    };
    const earlier = fixture.worker.sweep();
    await reached.promise;
    await fixture.worker.sweep();
    expect(await memory(first)).toMatchObject({ status: 'ready', attempts: 1 });
    await earlier;
  });
});

describe('a queue that is away', () => {
  it('pays back, keeps the memory to be processed, and says so', async () => {
    const before = await fixture.balance();
    fixture.queue.state = 'refusing';
    await expect(ingested()).rejects.toMatchObject({ code: 'MEMORY_UNREACHABLE', status: 503 });
    expect(await fixture.balance()).toBe(before);
    expect(await ledgerOf()).toEqual(['debit ingest', 'refund ingest']);
    await fixture.worker.sweep();
    const { rows } = await fixture.desk.list({
      by: fixture.owner,
      filters: null,
      entities: {},
      collectionId: null,
      status: null,
      type: null,
      page: { page: 1, limit: 10 },
    });
    expect(rows).toMatchObject([{ status: 'ready', text: TEXT }]);
    fixture.queue.state = 'lost';
    const again = await fixture.desk.ingest({ memories: [textOf(TEXT)], by: fixture.owner });
    expect(again).toMatchObject({
      charge: null,
      results: [{ outcome: 'deduplicated', id: rows[0]!.id, status: 'ready' }],
    });
  });

  it('pays a retry back too, once, whatever happens to the memory later', async () => {
    const before = await fixture.balance();
    fixture.embedder.isAway = true;
    const id = await ingested();
    const fail = async () => {
      for (let attempt = 0; attempt <= MOST_MEMORY_ATTEMPTS; attempt += 1) await fixture.pass(600_000);
    };
    await fail();
    fixture.queue.state = 'refusing';
    await expect(fixture.desk.retry({ memoryId: id, by: fixture.owner })).rejects.toMatchObject({
      code: 'MEMORY_UNREACHABLE',
    });
    expect(await fixture.balance()).toBe(before);
    expect((await memory(id)).status).toBe('pending');
    await fail();
    expect((await memory(id)).status).toBe('failed');
    expect(await fixture.balance()).toBe(before);
  });
});
