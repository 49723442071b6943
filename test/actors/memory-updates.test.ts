import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MemoryUpdate } from '../../actors/memory/memory-desk.ts';
import { MOST_MEMORY_ATTEMPTS } from '../../machines/memory.machine.ts';
import { modelOf } from '../language/fake-language-models.ts';
import { createMemoryFixture, type MemoryFixture, textOf } from './memory-fixture.ts';

const TEXT = 'Asha Rao moved to Mumbai in May.';
const NEW_TEXT = 'Asha Rao moved to Pune in June.';
const PRICE = 100n;
const costOf = (text: string) => BigInt(text.length) * PRICE;

let fixture: MemoryFixture;
let before: bigint;
beforeEach(async () => {
  fixture = await createMemoryFixture();
  before = await fixture.balance();
});
afterEach(() => fixture[Symbol.asyncDispose]());

async function ingested(more: object = {}): Promise<string> {
  const { results } = await fixture.desk.ingest({ memories: [textOf(TEXT, more)], by: fixture.owner });
  const [first] = results;
  if (first?.outcome !== 'queued') throw new Error(`it was ${first?.outcome}`);
  return first.id;
}

const memory = (memoryId: string) => fixture.desk.get({ memoryId, by: fixture.owner });

async function update(memoryId: string, change: Partial<MemoryUpdate>) {
  return await fixture.desk.update({
    memoryId,
    text: null,
    title: undefined,
    metadata: null,
    by: fixture.owner,
    ...change,
  });
}

/** Words of the collection for spelling correction in searches. */
async function words(): Promise<string[]> {
  const rows = await fixture.sql<{ word: string }[]>`select word from memory_words order by word`;
  return rows.map(({ word }) => word);
}

describe('new text of a memory', () => {
  it('costs its characters, becomes searchable at once, and gets processed like the first one', async () => {
    const id = await ingested();
    await fixture.worker.sweep();
    const { memory: updated, charge } = await update(id, { text: NEW_TEXT });
    expect(updated).toMatchObject({ status: 'pending', text: NEW_TEXT, storedAs: null, characters: NEW_TEXT.length });
    expect(charge?.chargedNano).toBe(costOf(NEW_TEXT));
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'whole', text: NEW_TEXT, embedder: null }]);
    expect(await words()).toContain('pune');
    expect(await words()).not.toContain('mumbai');
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', storedAs: 'chunks', error: null });
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'chunk', text: NEW_TEXT, embedder: 'fake-1' }]);
    expect(await fixture.balance()).toBe(before - costOf(TEXT) - costOf(NEW_TEXT));
  });

  it('costs and changes nothing when identical', async () => {
    const id = await ingested();
    await fixture.worker.sweep();
    expect(await update(id, { text: TEXT })).toMatchObject({ charge: null, memory: { status: 'ready' } });
    const again = [await update(id, { text: NEW_TEXT }), await update(id, { text: NEW_TEXT })];
    expect(again.map(({ charge }) => charge?.chargedNano)).toEqual([costOf(NEW_TEXT), undefined]);
    expect(await fixture.balance()).toBe(before - costOf(TEXT) - costOf(NEW_TEXT));
  });

  it('changes nothing when the wallet does not cover it', async () => {
    const id = await ingested();
    await fixture.worker.sweep();
    const units = await fixture.unitsOf(id);
    await fixture.sql`update accounts set balance_nano = 1 where kind = 'wallet'`;
    const refused = update(id, { text: NEW_TEXT, title: 'Move', metadata: { a: 1 } });
    await expect(refused).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(await memory(id)).toMatchObject({ status: 'ready', text: TEXT, title: null, metadata: {} });
    expect(await fixture.unitsOf(id)).toEqual(units);
  });

  it('replaces the facts of the old text', async () => {
    fixture.models.models = [modelOf('tiny-1.0')];
    let statement = 'Asha Rao moved to Mumbai.';
    fixture.models.otherwise = () =>
      JSON.stringify({ facts: [{ category: 'fact', statement, subject: 'Asha Rao', attribute: null }] });
    const id = await ingested();
    await fixture.worker.sweep();
    expect((await memory(id)).facts).toMatchObject([{ text: statement }]);
    statement = 'Asha Rao moved to Pune.';
    expect((await update(id, { text: NEW_TEXT })).memory.facts).toEqual([]);
    await fixture.worker.sweep();
    expect((await memory(id)).facts).toMatchObject([{ text: statement, supersededBy: null }]);
    expect(await fixture.unitsOf(id)).toMatchObject([{ text: NEW_TEXT }, { text: statement }]);
  });

  it('cancels the attempt in progress, which stores nothing of the old text', async () => {
    const id = await ingested();
    const { reached, release } = fixture.embedder.stall();
    const attempting = fixture.worker.sweep();
    await reached;
    await update(id, { text: NEW_TEXT });
    release();
    await attempting;
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', text: NEW_TEXT });
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'chunk', text: NEW_TEXT, embedder: 'fake-1' }]);
  });

  it('wins over an attempt of another node with the old text', async () => {
    const id = await ingested();
    const { reached, release } = fixture.embedder.stall();
    const attempting = fixture.worker.sweep();
    await reached;
    // Simulates another node, without notifying this one.
    await fixture.sql`update memories set attempts = 2, status = 'pending', content = ${NEW_TEXT}, leased_until = null where id = ${id}`;
    release();
    await attempting;
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'chunk', text: NEW_TEXT, embedder: 'fake-1' }]);
  });

  it('makes a failed memory pending; another failure refunds only the new charge', async () => {
    fixture.embedder.isAway = true;
    const id = await ingested();
    const fail = async () => {
      for (let attempt = 0; attempt <= MOST_MEMORY_ATTEMPTS; attempt += 1) await fixture.pass(600_000);
    };
    await fail();
    expect(await fixture.balance()).toBe(before);
    expect((await update(id, { text: NEW_TEXT })).memory).toMatchObject({ status: 'pending', error: null });
    expect(await fixture.balance()).toBe(before - costOf(NEW_TEXT));
    await fail();
    expect((await memory(id)).status).toBe('failed');
    expect(await fixture.balance()).toBe(before);
    fixture.embedder.isAway = false;
    await update(id, { text: TEXT });
    await fixture.worker.sweep();
    expect((await memory(id)).status).toBe('ready');
    expect(await fixture.balance()).toBe(before - costOf(TEXT));
  });

  it('survives with a refund when the queue rejects it', async () => {
    const id = await ingested();
    await fixture.worker.sweep();
    fixture.queue.state = 'refusing';
    await expect(update(id, { text: NEW_TEXT })).rejects.toMatchObject({ code: 'MEMORY_UNREACHABLE', status: 503 });
    expect(await fixture.balance()).toBe(before - costOf(TEXT));
    await fixture.worker.sweep();
    expect(await memory(id)).toMatchObject({ status: 'ready', text: NEW_TEXT });
  });
});

describe('new title of a memory', () => {
  it('replaces the old one in searches, and keeps the embeddings', async () => {
    const id = await ingested({ title: 'Removal' });
    await fixture.worker.sweep();
    const { length: batches } = fixture.embedder.batches;
    const { memory: updated, charge } = await update(id, { title: 'Relocation' });
    expect([charge, updated.title, updated.status]).toEqual([null, 'Relocation', 'ready']);
    expect(await fixture.unitsOf(id)).toEqual([{ kind: 'chunk', text: TEXT, embedder: 'fake-1' }]);
    expect(await words()).toContain('relocation');
    expect(await words()).not.toContain('removal');
    await update(id, { title: null });
    expect(await words()).not.toContain('relocation');
    await fixture.worker.sweep();
    expect(fixture.embedder.batches).toHaveLength(batches);
    expect(await fixture.balance()).toBe(before - costOf(TEXT));
  });

  it('keeps the facts of the memory', async () => {
    fixture.models.models = [modelOf('tiny-1.0')];
    const statement = 'Asha Rao moved to Mumbai.';
    fixture.models.otherwise = () =>
      JSON.stringify({ facts: [{ category: 'fact', statement, subject: 'Asha Rao', attribute: null }] });
    const id = await ingested();
    await fixture.worker.sweep();
    await update(id, { title: 'Relocation' });
    expect(await fixture.unitsOf(id)).toMatchObject([
      { kind: 'chunk', text: TEXT },
      { kind: 'fact', text: statement },
    ]);
    expect((await memory(id)).facts).toMatchObject([{ text: statement }]);
    const [{ units }] = await fixture.sql<[{ units: number }]>`select units from memory_collections`;
    expect(units).toBe(2);
  });

  it('survives an attempt in progress', async () => {
    const id = await ingested();
    const { reached, release } = fixture.embedder.stall();
    const attempting = fixture.worker.sweep();
    await reached;
    await update(id, { title: 'Relocation' });
    release();
    await attempting;
    expect(await memory(id)).toMatchObject({ status: 'ready', title: 'Relocation', attempts: 1 });
    expect(await words()).toContain('relocation');
  });
});

describe('new metadata of a memory', () => {
  it('sets keys, deletes null ones and keeps the others', async () => {
    const id = await ingested({ metadata: { customer: 'C-1', draft: true, user_id: 'u-1' } });
    const { memory: updated } = await update(id, { metadata: { customer: 'C-2', draft: null, absent: null } });
    expect(updated.metadata).toEqual({ customer: 'C-2', user_id: 'u-1' });
    expect((await update(id, { title: 'T' })).memory.metadata).toEqual({ customer: 'C-2', user_id: 'u-1' });
  });

  it('fails when it exceeds the limit together with the stored metadata', async () => {
    const id = await ingested({ metadata: { a: 'x'.repeat(5_000) } });
    const refused = update(id, { metadata: { b: 'x'.repeat(5_000) } });
    await expect(refused).rejects.toMatchObject({ code: 'VALIDATION_FAILED', details: [{ path: 'metadata' }] });
    const { memory: updated } = await update(id, { metadata: { a: null, b: 'x'.repeat(5_000) } });
    expect(Object.keys(updated.metadata)).toEqual(['b']);
  });
});
