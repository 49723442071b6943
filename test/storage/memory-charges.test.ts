import { expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { charge, refund } from '../../storage/ledger.ts';
import { lastMemoryCharge, memoryChargeKey, memoryUsage } from '../../storage/queries/memory-charges.ts';
import { createMemoryCollection } from '../../storage/queries/memory-collections.ts';
import { findMemoryHead, listMemoryHeads } from '../../storage/queries/memory-heads.ts';
import { findSameMemory } from '../../storage/queries/memory-repeats.ts';
import { onEveryServer } from './every-server.ts';
import { remember, seedColleague, seedMemories } from './memory-fixture.ts';
import { later, NOW } from './seed.ts';

onEveryServer('memory charges', (database) => {
  async function charged(
    workspaceId: string,
    {
      key,
      operation = 'ingest',
      amountNano = 100n,
      userId = null,
      at = NOW,
    }: {
      key: string;
      operation?: string;
      amountNano?: bigint;
      userId?: number | null;
      at?: Date;
    },
  ) {
    const cost = {
      service: 'memory',
      quantity: 0.5,
      unit: '1000 characters',
      unitPriceNano: 200n,
      amountNano,
    } as const;
    const by = { workspaceId, userId, apiKeyId: null, resourceId: null };
    await charge(database().sql, { ...cost, ...by, operation, operationKey: key, at });
  }

  it('return the last one by the number of attempts', async () => {
    const { sql } = database();
    const { workspaceId } = await seedMemories(sql);
    const last = (attempts: number) => lastMemoryCharge(sql, { memoryId: 'm', attempts });
    expect(await last(3)).toBeNull();
    await charged(workspaceId, { key: memoryChargeKey('m', 0) });
    await charged(workspaceId, { key: memoryChargeKey('other', 3) });
    expect(await last(0)).toEqual({ operationKey: 'memory:m:0', attempts: 0 });
    expect(await last(11)).toMatchObject({ attempts: 0 });
    await charged(workspaceId, { key: memoryChargeKey('m', 12) });
    expect(await last(11)).toMatchObject({ attempts: 0 });
    expect(await last(24)).toMatchObject({ attempts: 12 });
    const before = { reversesOperationKey: 'memory:m:12', operationKey: 'memory:m:12:refund' };
    await refund(sql, { workspaceId, ...before });
    expect(await last(24)).toMatchObject({ attempts: 12 });
  });

  it('add up by operation for a month and a user, without refunds', async () => {
    const { sql } = database();
    const { workspaceId, viewer } = await seedMemories(sql);
    const { userId } = viewer;
    await charged(workspaceId, { key: 'a', userId });
    await charged(workspaceId, { key: 'b', amountNano: 250n });
    await charged(workspaceId, { key: 'c', operation: 'search', amountNano: 7n, userId });
    await charged(workspaceId, { key: 'd', amountNano: 1_000n });
    await refund(sql, { workspaceId, reversesOperationKey: 'd', operationKey: 'd:refund' });
    await charged(workspaceId, { key: 'e', amountNano: 9n, at: later(86_400_000) });
    const span = { from: NOW, to: later(1) };
    expect(await memoryUsage(sql, { workspaceId, userId: null, ...span })).toEqual([
      { operation: 'ingest', count: 2, units: 1, amountNano: 350n },
      { operation: 'search', count: 1, units: 0.5, amountNano: 7n },
    ]);
    expect(await memoryUsage(sql, { workspaceId, userId, ...span })).toMatchObject([
      { operation: 'ingest', count: 1, amountNano: 100n },
      { operation: 'search', count: 1 },
    ]);
  });

  it('consider memories equal by text, title, metadata and collection, unless failed', async () => {
    const { sql } = database();
    const { collection } = await seedMemories(sql);
    const content = 'Caf\u00e9 \u0000opens.';
    const given = { collectionId: collection.id, title: 'T', content, metadata: { a: 1, b: { c: [1, 'x'] } } };
    const same = (more = {}) => inTransaction(sql, (tx) => findSameMemory(tx, { ...given, ...more }));
    expect(await same()).toBeNull();
    const { id } = await remember(sql, collection, given);
    expect(await same()).toEqual({ id, status: 'pending' });
    expect(await same({ content: 'Cafe\u0301 opens.', metadata: { b: { c: [1, 'x'] }, a: 1 } })).toMatchObject({ id });
    for (const other of [{ title: null }, { title: 't' }, { metadata: { a: 1 } }, { content: 'Cafe opens.' }]) {
      expect(await same(other)).toBeNull();
    }
    await sql`update memories set status = 'failed', error_code = 'X', next_attempt_at = null where id = ${id}`;
    expect(await same()).toBeNull();
  });

  it('show heads with an excerpt to permitted viewers', async () => {
    const { sql } = database();
    const { workspaceId, viewer, collection } = await seedMemories(sql);
    const { id } = await remember(sql, collection, { content: 'Lantern. '.repeat(100) });
    const page = { page: 1, limit: 10 };
    expect((await findMemoryHead(sql, viewer, id))!.excerpt).toHaveLength(200);
    expect(await listMemoryHeads(sql, viewer, page)).toMatchObject({ total: 1, rows: [{ id, type: 'user' }] });
    expect((await listMemoryHeads(sql, viewer, { ...page, status: 'ready' })).total).toBe(0);
    const colleague = await seedColleague(sql, workspaceId, 'owner');
    expect(await findMemoryHead(sql, colleague, id)).toBeNull();
    expect(await findMemoryHead(sql, viewer, 'nonsense')).toBeNull();
    expect(await listMemoryHeads(sql, colleague, page)).toEqual({ rows: [], total: 0 });
  });

  it('list heads of all collections in one order, without gaps or repeats', async () => {
    const { sql } = database();
    const { workspaceId, viewer, collection } = await seedMemories(sql);
    const named = { workspaceId, type: 'hive', name: 'All', createdByUserId: viewer.userId, now: NOW } as const;
    const hive = await createMemoryCollection(sql, named);
    const made = [];
    // Two per timestamp.
    for (let n = 0; n < 10; n += 1) {
      made.push(await remember(sql, n % 3 === 0 ? hive : collection, { content: `${n}`, now: later(n >> 1) }));
    }
    const ordered = made
      .toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? -1 : 1))
      .map(({ id }) => id);
    const pages = [];
    for (const page of [1, 2, 3, 4, 5]) pages.push(await listMemoryHeads(sql, viewer, { page, limit: 3 }));
    expect(pages.map(({ total }) => total)).toEqual([10, 10, 10, 10, 10]);
    expect(pages.flatMap(({ rows }) => rows.map(({ id }) => id))).toEqual(ordered);
    const inHive = await listMemoryHeads(sql, viewer, { page: 1, limit: 3, type: 'hive', status: 'pending' });
    expect([inHive.rows.length, inHive.total]).toEqual([3, 4]);
  });
});
