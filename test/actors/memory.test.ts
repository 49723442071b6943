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

async function ledgerOf(): Promise<string[]> {
  const page = { page: 1, limit: 100 };
  const { rows } = await listUsage(fixture.sql, { workspaceId: fixture.owner.workspaceId }, page);
  return rows.map(({ operation, direction }) => `${direction} ${operation}`).toReversed();
}

/** Takes far longer than an empty sweep. */
async function severalQueries(): Promise<void> {
  for (let query = 0; query < 20; query += 1) await fixture.sql`select 1`;
}

describe('processing of a memory', () => {
  it('charges at once, finds by words at once, and completes in one attempt', async () => {
    const before = await fixture.balance();
    const id = await ingested();
    expect(await memory(id)).toMatchObject({ status: 'pending', text: TEXT, storedAs: null, attempts: 0 });
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'whole', text: TEXT, embedder: null }]);
    expect(await fixture.balance()).toBe(before - COST);
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({
      status: 'ready',
      stage: null,
      storedAs: 'chunks',
      attempts: 1,
      error: null,
    });
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'chunk', text: TEXT, embedder: 'fake-1' }]);
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('retries failed embeddings with doubling delays, and finds by words meanwhile', async () => {
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
    expect(await fixture.unitsOf(id)).toHaveLength(1);
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

  it('refunds a final failure, without details of the server', async () => {
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
    expect(await fixture.unitsOf(id)).toHaveLength(1);
  });

  it('charges and attempts a failed memory again on each retry', async () => {
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

  it('rejects a retry that the wallet does not cover', async () => {
    fixture.embedder.isAway = true;
    const id = await ingested();
    for (let attempt = 0; attempt <= MOST_MEMORY_ATTEMPTS; attempt += 1) await fixture.pass(600_000);
    await fixture.sql`update accounts set balance_nano = 1 where kind = 'wallet'`;
    await expect(fixture.desk.retry({ memoryId: id, by: fixture.owner })).rejects.toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
    });
    expect((await memory(id)).status).toBe('failed');
  });

  it('moves from a dead node to another one when the lease expires, without duplicates', async () => {
    const id = await ingested();
    const { reached, release } = fixture.embedder.stall();
    const dying = fixture.worker.sweep();
    await reached;
    const another = await fixture.anotherWorker();
    await another.sweep();
    expect(await memory(id)).toMatchObject({ status: 'processing', stage: 'embedding', attempts: 1 });
    fixture.time.ms += LEASE_MS + 1;
    fixture.embedder.onEmbed = async () => {};
    await another.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 2 });
    // The first node revives, but no longer owns the memory.
    release();
    await dying;
    expect(await fixture.unitsOf(id)).toHaveLength(1);
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 2 });
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('gives up and refunds a memory that crashes the process each time', async () => {
    const before = await fixture.balance();
    const id = await ingested();
    await fixture.sql`
      update memories set status = 'processing', attempts = ${MOST_MEMORY_ATTEMPTS}, leased_until = created_at where id = ${id}`;
    await fixture.pass(1);
    expect(await memory(id)).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
    expect(await fixture.balance()).toBe(before);
    expect(fixture.embedder.batches).toEqual([]);
  });

  it('leaves only the charge of a memory deleted during an attempt', async () => {
    const id = await ingested();
    const { reached, release } = fixture.embedder.stall();
    const attempting = fixture.worker.sweep();
    await reached;
    await fixture.desk.remove({ memoryId: id, by: fixture.owner });
    release();
    await attempting;
    expect(await fixture.unitsOf(id)).toEqual([]);
    await expect(memory(id)).rejects.toMatchObject({ code: 'MEMORY_NOT_FOUND' });
    const [row] = await fixture.sql`select content, title, metadata from memories where id = ${id}`;
    expect(row).toEqual({ content: '', title: null, metadata: {} });
    expect(await ledgerOf()).toEqual(['debit ingest']);
  });

  it('hands an attempt of a closing server to the next one at once', async () => {
    const id = await ingested();
    const { reached } = fixture.embedder.stall();
    void fixture.worker.sweep();
    await reached;
    await fixture.worker.close();
    fixture.embedder.onEmbed = async () => {};
    const next = await fixture.anotherWorker();
    await next.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 2 });
  });

  it('starts when its job arrives, with four attempts at a time', async () => {
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
      // Time for a fifth attempt to start, if one could.
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

describe('sweep of memories', () => {
  it('attempts everything due, a few at a time', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 9; index += 1) ids.push(await ingested(`Memory ${index} of nine.`));
    fixture.embedder.onEmbed = severalQueries;
    await fixture.worker.sweep();
    for (const id of ids) expect(await memory(id)).toMatchObject({ status: 'ready', attempts: 1 });
  });

  it('waits for an attempt that an earlier sweep started', async () => {
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

describe('unavailable memory queue', () => {
  it('leads to an error and a refund, and processes the memory later', async () => {
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

  it('leads to one refund of a retry, whatever happens to the memory later', async () => {
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
