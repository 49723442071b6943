import { expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { costOf, DEFAULT_PRICES, priceBookOf, setPrice } from '../../storage/price-book.ts';
import { admitCall, settleCall } from '../../storage/queries/calls.ts';
import { collectRent, numbersWithRentDue } from '../../storage/queries/number-rent.ts';
import { listNumbers, releaseNumber, rentNumber } from '../../storage/queries/numbers.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { onEveryServer } from './every-server.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace, settlement, USD } from './seed.ts';

const PAGE = { page: 1, limit: 100 };

onEveryServer('billing', (database) => {
  async function ready(balanceNano = 10n * USD) {
    const { sql } = database();
    const { workspace, user } = await seedWorkspace(sql, { balanceNano });
    return { sql, workspaceId: workspace.id, userId: user.id };
  }

  it('uses default prices unless the plan or the workspace has its own', async () => {
    const { sql, workspaceId } = await ready();
    const other = await seedWorkspace(sql);
    expect(await priceBookOf(sql, workspaceId)).toEqual(DEFAULT_PRICES);
    const set = (scope: Parameters<typeof setPrice>[1]['scope'], value: bigint | null) =>
      setPrice(sql, { scope, item: 'memory', value, now: NOW });
    const priceOf = async (id: string) => (await priceBookOf(sql, id)).memory;
    await set({ plan: 'enterprise' }, 5n);
    await set({ plan: 'free' }, 6n);
    await set({ workspaceId }, 7n);
    await set({ workspaceId }, 8n);
    expect([await priceOf(workspaceId), await priceOf(other.workspace.id)]).toEqual([8n, 5n]);
    await set({ workspaceId }, null);
    expect(await priceOf(workspaceId)).toBe(5n);
    await set({ plan: 'enterprise' }, null);
    expect(await priceOf(workspaceId)).toBe(DEFAULT_PRICES.memory);
    await expect(set({ workspaceId }, -1n)).rejects.toThrow(RangeError);
  });

  it('charges a call to the key and user that placed it, with a usage log entry', async () => {
    const { sql, workspaceId, userId } = await ready();
    await seedTrunk(sql, { workspaceId });
    const input = admission({ workspaceId, createdByUserId: userId });
    const { call } = await admitCall(sql, input);
    await settleCall(sql, settlement(call.callId, { talkSeconds: 90 }));
    const { rows } = await listUsage(sql, { workspaceId }, PAGE);
    expect(rows).toMatchObject([
      {
        service: 'call',
        operation: 'click2call',
        resourceId: call.callId,
        quantity: 1.5,
        unit: 'minute',
        unitPriceNano: 60_000_000n,
        amountNano: 90_000_000n,
        balanceBeforeNano: 10n * USD,
        balanceAfterNano: 10n * USD - 90_000_000n,
        direction: 'debit',
        status: 'succeeded',
        userId,
      },
    ]);
  });

  it('distinguishes partly paid and unpaid charges from paid ones', async () => {
    const { sql, workspaceId } = await ready(100_000_000n);
    await seedTrunk(sql, { workspaceId });
    const first = await admitCall(sql, admission({ workspaceId }));
    await expect(admitCall(sql, admission({ workspaceId }))).rejects.toMatchObject({ code: 'RECHARGE_REQUIRED' });
    await settleCall(sql, settlement(first.call.callId, { talkSeconds: 3_000 }));
    const { rows } = await listUsage(sql, { workspaceId, status: 'partial' }, PAGE);
    expect(rows).toMatchObject([{ amountNano: 100_000_000n, quantity: 50, balanceAfterNano: 0n }]);
  });

  it('logs no usage for a free call', async () => {
    const { sql, workspaceId } = await ready();
    await seedTrunk(sql, { workspaceId });
    const { call } = await admitCall(sql, admission({ workspaceId }));
    await settleCall(sql, settlement(call.callId, { talkSeconds: 0 }));
    expect((await listUsage(sql, { workspaceId }, PAGE)).total).toBe(0);
  });

  it('takes the price of a call from the trunk, otherwise from the price book', async () => {
    const { sql, workspaceId } = await ready();
    await seedTrunk(sql, { workspaceId, pricePerMinuteNano: 0n });
    const price = async () => (await admitCall(sql, admission({ workspaceId }))).call.pricePerMinuteNano;
    expect(await price()).toBe(0n);
    await setPrice(sql, { scope: { workspaceId }, item: 'call', value: 12_000_000n, now: NOW });
    expect(await price()).toBe(12_000_000n);
    await sql`update trunks set price_per_minute_nano = 7000000`;
    expect(await price()).toBe(7_000_000n);
  });

  it('rents a number for free by default', async () => {
    const { sql, workspaceId } = await ready(0n);
    await seedTrunk(sql, { workspaceId });
    const rented = await rentNumber(sql, { workspaceId, e164: '+911140000002', now: NOW });
    expect(rented).toMatchObject({ status: 'assigned', monthlyPriceNano: 0n, charge: null });
    expect(await numbersWithRentDue(sql, new Date('2026-02-02T03:04:05.677Z'))).toEqual([]);
    const due = new Date('2026-02-02T03:04:05.678Z');
    expect(await numbersWithRentDue(sql, due)).toEqual(['+911140000001', '+911140000002']);
    expect(await collectRent(sql, { e164: '+911140000002', now: due })).toBe(true);
    expect(await numbersWithRentDue(sql, due)).toEqual(['+911140000001']);
    expect((await listUsage(sql, { workspaceId }, PAGE)).total).toBe(0);
  });

  it('charges the first month of a number at once, or rents nothing', async () => {
    const { sql, workspaceId } = await ready(3n * USD);
    await seedTrunk(sql, { workspaceId });
    await setNumberPrice(sql, workspaceId, 2n * USD);
    const first = await rentNumber(sql, { workspaceId, e164: '+911140000002', now: NOW });
    expect(first.charge).toMatchObject({ chargedNano: 2n * USD, balanceAfterNano: 1n * USD });
    const second = rentNumber(sql, { workspaceId, e164: '+911140000003', now: NOW });
    await expect(second).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    const { rows } = await listNumbers(sql, { workspaceId }, PAGE);
    expect(rows.map((row) => [row.e164, row.monthlyPriceNano])).toEqual([
      ['+911140000001', 2n * USD],
      ['+911140000002', 2n * USD],
    ]);
  });

  it('prefers the price of the number itself', async () => {
    const { sql, workspaceId } = await ready();
    await seedTrunk(sql, { workspaceId });
    await setNumberPrice(sql, workspaceId, 2n * USD);
    await sql`update numbers set monthly_price_nano = 5 where e164 = '+911140000002'`;
    const rented = await rentNumber(sql, { workspaceId, e164: '+911140000002', now: NOW });
    expect(rented).toMatchObject({ monthlyPriceNano: 5n, charge: { chargedNano: 5n } });
  });

  it('charges each month once by the calendar, despite several collecting nodes', async () => {
    const { sql, workspaceId } = await ready();
    await seedTrunk(sql, { workspaceId });
    await releaseNumber(sql, { workspaceId, e164: '+911140000001', now: NOW });
    await setNumberPrice(sql, workspaceId, 1n * USD);
    const e164 = '+911140000002';
    await rentNumber(sql, { workspaceId, e164, now: new Date('2026-01-31T12:00:00Z') });
    const dueAt = async (time: string) => (await numbersWithRentDue(sql, new Date(time))).length;
    const collect = (time: string) => collectRent(sql, { e164, now: new Date(time) });
    expect([await dueAt('2026-02-28T11:59:59Z'), await dueAt('2026-02-28T12:00:00Z')]).toEqual([0, 1]);
    const collected = await Promise.all(Array.from({ length: 5 }, () => collect('2026-02-28T12:00:00Z')));
    expect(collected.filter(Boolean)).toHaveLength(1);
    expect([await dueAt('2026-03-31T11:59:59Z'), await dueAt('2026-03-31T12:00:00Z')]).toEqual([0, 1]);
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(8n * USD);
  });

  it('charges no month early if the clock of a node is far ahead', async () => {
    const { sql, workspaceId } = await ready();
    await seedTrunk(sql, { workspaceId });
    await releaseNumber(sql, { workspaceId, e164: '+911140000001', now: NOW });
    const e164 = '+911140000002';
    await rentNumber(sql, { workspaceId, e164, now: new Date() });
    const ahead = new Date(Date.now() + 365 * 86_400_000);
    expect(await numbersWithRentDue(sql, ahead)).toEqual([]);
    expect(await collectRent(sql, { e164, now: ahead })).toBe(false);
  });

  it('ends the rent with the rental, and restarts with the next', async () => {
    const { sql, workspaceId } = await ready();
    await seedTrunk(sql, { workspaceId });
    await setNumberPrice(sql, workspaceId, 1n * USD);
    const e164 = '+911140000002';
    await rentNumber(sql, { workspaceId, e164, now: NOW });
    await releaseNumber(sql, { workspaceId, e164, now: later(1_000) });
    expect(await collectRent(sql, { e164, now: new Date('2026-06-01T00:00:00Z') })).toBe(false);
    const other = await seedWorkspace(sql);
    await sql`
      insert into trunk_workspaces (trunk_id, workspace_id, created_at)
      select trunk_id, ${other.workspace.id}, ${NOW} from numbers where e164 = ${e164}`;
    await setNumberPrice(sql, other.workspace.id, 3n * USD);
    await rentNumber(sql, { workspaceId: other.workspace.id, e164, now: later(2_000) });
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(9n * USD);
    expect((await walletOf(sql, other.workspace.id)).balanceNano).toBe(7n * USD);
  });

  it('protects the usage log against changes', async () => {
    const { sql } = await ready();
    await expect(sql`update usage_logs set quantity = 0`).rejects.toThrow('usage_logs is append-only');
  });
});

it('costOf prices a quantity, rounded up to whole nano-dollars', () => {
  const cost = (input: Parameters<typeof costOf>[1]) => costOf(DEFAULT_PRICES, input);
  expect(cost({ service: 'memory', count: 1_000 })).toEqual({
    service: 'memory',
    amountNano: 100_000n,
    quantity: 1,
    unit: '1000 characters',
    unitPriceNano: 100_000n,
  });
  expect(cost({ service: 'memory', count: 1 }).amountNano).toBe(100n);
  expect(cost({ service: 'llm', count: 50 }).amountNano).toBe(1_000_000n);
  expect(cost({ service: 'tts', count: 5_000 })).toMatchObject({ amountNano: 75_000_000n, unit: 'character' });
  expect(cost({ service: 'stt', count: 90_000 })).toMatchObject({ amountNano: 9_000_000n, quantity: 1.5 });
  expect(cost({ service: 'stt', count: 1 }).amountNano).toBe(100n);
  // A surcharge of 30 %.
  expect(cost({ service: 'stt', count: 60_000, diarized: true })).toMatchObject({
    amountNano: 7_800_000n,
    unitPriceNano: 7_800_000n,
  });
  expect(costOf({ ...DEFAULT_PRICES, call: 7n }, { service: 'call', count: 61 }).amountNano).toBe(8n);
});

async function setNumberPrice(sql: Sql, workspaceId: string, value: bigint): Promise<void> {
  await setPrice(sql, { scope: { workspaceId }, item: 'number', value, now: NOW });
}
