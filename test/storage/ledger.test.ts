import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import {
  charge,
  growHold,
  hold,
  refund,
  reverseTopUp,
  settleHold,
  topUp,
  voidHold,
  walletOf,
} from '../../storage/ledger.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import * as fc from '../properties.ts';
import { onEveryServer } from './every-server.ts';
import { seedWorkspace } from './seed.ts';
import { requireSoundBooks } from './sound-books.ts';

onEveryServer('ledger', (database) => {
  async function funded(balanceNano = 1_000n) {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql, { balanceNano });
    return { sql, workspaceId: workspace.id };
  }

  it('holds the wanted or available amount, and rejects zero or less than the minimum', async () => {
    const { sql, workspaceId } = await funded();
    const holdOf = (amountNano: bigint, minimumNano = 0n) =>
      hold(sql, { workspaceId, amountNano, minimumNano, operationKey: randomUUID() });
    expect((await holdOf(400n)).amountNano).toBe(400n);
    await expect(holdOf(700n, 601n)).rejects.toMatchObject({ code: 'RECHARGE_REQUIRED' });
    expect((await holdOf(700n)).amountNano).toBe(600n);
    await expect(holdOf(0n)).rejects.toMatchObject({ code: 'RECHARGE_REQUIRED' });
    expect(await walletOf(sql, workspaceId)).toEqual({ balanceNano: 1_000n, heldNano: 1_000n, availableNano: 0n });
  });

  it('grows a hold up to the available funds', async () => {
    const { sql, workspaceId } = await funded();
    const { holdId } = await hold(sql, { workspaceId, amountNano: 300n, minimumNano: 0n, operationKey: 'h' });
    expect(await growHold(sql, { holdId, wantedTotalNano: 500n, operationKey: 'g1' })).toEqual({ amountNano: 500n });
    expect(await growHold(sql, { holdId, wantedTotalNano: 400n, operationKey: 'g2' })).toEqual({ amountNano: 500n });
    expect(await growHold(sql, { holdId, wantedTotalNano: 5_000n, operationKey: 'g3' })).toEqual({
      amountNano: 1_000n,
    });
    expect(await growHold(sql, { holdId, wantedTotalNano: 500n, operationKey: 'g1' })).toEqual({ amountNano: 500n });
    expect((await walletOf(sql, workspaceId)).heldNano).toBe(1_000n);
  });

  it('charges beyond the hold from the wallet, never beyond both', async () => {
    const { sql, workspaceId } = await funded();
    const first = await hold(sql, { workspaceId, amountNano: 300n, minimumNano: 0n, operationKey: 'h1' });
    const second = await hold(sql, { workspaceId, amountNano: 100n, minimumNano: 0n, operationKey: 'h2' });
    expect(await settleHold(sql, { holdId: first.holdId, amountNano: 500n, operationKey: 's1' })).toEqual({
      chargedNano: 500n,
    });
    expect(await walletOf(sql, workspaceId)).toEqual({ balanceNano: 500n, heldNano: 100n, availableNano: 400n });
    expect(await settleHold(sql, { holdId: second.holdId, amountNano: 9_999n, operationKey: 's2' })).toEqual({
      chargedNano: 500n,
    });
    expect(await walletOf(sql, workspaceId)).toEqual({ balanceNano: 0n, heldNano: 0n, availableNano: 0n });
  });

  it('replays the first result and rejects the same key for another operation', async () => {
    const { sql, workspaceId } = await funded();
    const wanted = { workspaceId, amountNano: 300n, minimumNano: 0n, operationKey: 'h' };
    const first = await hold(sql, wanted);
    expect(await hold(sql, wanted)).toEqual(first);
    await expect(hold(sql, { ...wanted, amountNano: 301n })).rejects.toMatchObject({ code: 'INTERNAL' });
    const settle = { holdId: first.holdId, amountNano: 100n, operationKey: 's' };
    expect(await settleHold(sql, settle)).toEqual({ chargedNano: 100n });
    expect(await settleHold(sql, settle)).toEqual({ chargedNano: 100n });
    await expect(settleHold(sql, { ...settle, amountNano: 99n })).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect(settleHold(sql, { ...settle, operationKey: 's2' })).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect(voidHold(sql, { holdId: first.holdId, operationKey: 's' })).rejects.toMatchObject({
      code: 'INTERNAL',
    });
    expect(await growHold(sql, { holdId: first.holdId, wantedTotalNano: 900n, operationKey: 'g' })).toEqual({
      amountNano: 0n,
    });
    const money = { workspaceId, amountNano: 5n, paymentType: 'one_time', operationKey: 't' } as const;
    await topUp(sql, money);
    const { wallet } = await topUp(sql, money);
    expect(wallet).toEqual({ balanceNano: 905n, heldNano: 0n, availableNano: 905n });
    await expect(topUp(sql, { ...money, amountNano: 6n })).rejects.toMatchObject({ code: 'INTERNAL' });
  });

  it('refunds a charge once despite repeats and concurrency', async () => {
    const { sql, workspaceId } = await funded();
    const { holdId } = await hold(sql, { workspaceId, amountNano: 300n, minimumNano: 0n, operationKey: 'h' });
    await settleHold(sql, { holdId, amountNano: 200n, operationKey: 's' });
    const asked = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        refund(sql, { workspaceId, reversesOperationKey: 's', operationKey: `r${index % 3}` }),
      ),
    );
    expect(asked.every((answer) => answer.refundedNano === 200n)).toBe(true);
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(1_000n);
    await expect(refund(sql, { workspaceId, reversesOperationKey: 'h', operationKey: 'x' })).rejects.toMatchObject({
      code: 'INTERNAL',
    });
  });

  it('charges everything or nothing, and reports the missing amount', async () => {
    const { sql, workspaceId } = await funded(1_000_000_000n);
    const wanted = chargeOf(workspaceId, { amountNano: 400_000_000n, operationKey: 'c' });
    const first = await charge(sql, wanted);
    expect(first).toEqual({
      entryId: expect.any(String),
      chargedNano: 400_000_000n,
      balanceBeforeNano: 1_000_000_000n,
      balanceAfterNano: 600_000_000n,
    });
    await hold(sql, { workspaceId, amountNano: 100_000_000n, minimumNano: 0n, operationKey: 'h' });
    expect(await charge(sql, wanted)).toEqual(first);
    await expect(charge(sql, { ...wanted, amountNano: 1n })).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect(charge(sql, { ...wanted, amountNano: 500_000_001n, operationKey: 'd' })).rejects.toMatchObject({
      code: 'INSUFFICIENT_CREDITS',
      status: 402,
      details: { required: 0.500000001, available: 0.5, shortfall: 0.000000001 },
    });
    await charge(sql, { ...wanted, amountNano: 500_000_000n, operationKey: 'd' });
    await charge(sql, { ...wanted, amountNano: 0n, operationKey: 'e' });
    expect((await walletOf(sql, workspaceId)).availableNano).toBe(0n);
    await expect(charge(sql, { ...wanted, amountNano: -1n, operationKey: 'f' })).rejects.toThrow(RangeError);
    await requireSoundBooks(sql, workspaceId);
  });

  it('refunds a charge fully or partly and lists it with the charge', async () => {
    const { sql, workspaceId } = await funded();
    await charge(sql, chargeOf(workspaceId, { amountNano: 300n, operationKey: 'c' }));
    const back = { workspaceId, reversesOperationKey: 'c' };
    await expect(refund(sql, { ...back, amountNano: 301n, operationKey: 'r' })).rejects.toThrow(RangeError);
    expect(await refund(sql, { ...back, amountNano: 100n, operationKey: 'r' })).toEqual({ refundedNano: 100n });
    expect(await refund(sql, { ...back, operationKey: 'again' })).toEqual({ refundedNano: 100n });
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(800n);
    const { rows } = await listUsage(sql, { workspaceId }, { page: 1, limit: 10 });
    expect(rows).toMatchObject([
      { direction: 'refund', amountNano: 100n, reversesId: rows[1]!.id, operation: 'chat', status: 'succeeded' },
      { direction: 'debit', amountNano: 300n, reversesId: null, operation: 'chat', status: 'refunded' },
    ]);
  });

  it('rejects changes of booked entries and unbalanced entries', async () => {
    const { sql, workspaceId } = await funded();
    await expect(sql`update entries set requested_nano = 0`).rejects.toThrow('entries is append-only');
    await expect(sql`delete from postings`).rejects.toThrow('postings is append-only');
    await expect(sql`truncate entries cascade`).rejects.toThrow('append-only');
    const [entry] = await sql<{ id: string }[]>`select id from entries limit 1`;
    const [account] = await sql<{ id: bigint }[]>`
      select id from accounts where workspace_id = ${workspaceId} and kind = 'revenue'`;
    await expect(
      sql`insert into postings (entry_id, account_id, amount_nano) values (${entry!.id}, ${account!.id}, 1)`,
    ).rejects.toThrow('does not sum to zero');
    await expect(sql`update accounts set balance_nano = -1 where kind = 'held'`).rejects.toThrow('never_overdrawn');
  });

  it('allows only a reversal to overdraw a wallet', async () => {
    const { sql, workspaceId } = await funded();
    const entryOf = async (kind: 'settle' | 'reversal') => {
      const [entry] = await sql<{ id: string }[]>`
        insert into entries (id, operation_key, kind, workspace_id, requested_nano, result_nano, balance_before_nano,
          balance_after_nano, created_at)
        values (gen_random_uuid(), ${kind}, ${kind}, ${workspaceId}, 1001, 1001, 1000, -1, now()) returning id`;
      await sql`
        insert into postings (entry_id, account_id, amount_nano)
        select ${entry!.id}, id, case kind when 'wallet' then -1001 else 1001 end from accounts
        where workspace_id = ${workspaceId} and kind in ('wallet', 'revenue')`;
    };
    await expect(entryOf('settle')).rejects.toThrow('never_overdrawn');
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(1_000n);
    await entryOf('reversal');
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(-1n);
  });

  it('blocks an overdrawn wallet except for earlier holds', async () => {
    const { sql, workspaceId } = await funded();
    const held = await hold(sql, { workspaceId, amountNano: 300n, minimumNano: 1n, operationKey: 'h' });
    await reverse(sql, { workspaceId, amountNano: 1_000n, operationKey: 'back' });
    expect(await walletOf(sql, workspaceId)).toEqual({ balanceNano: 0n, heldNano: 300n, availableNano: -300n });
    const wanted = { workspaceId, amountNano: 1n, minimumNano: 1n, operationKey: 'more' };
    await expect(hold(sql, wanted)).rejects.toMatchObject({ code: 'RECHARGE_REQUIRED' });
    const bought = charge(sql, chargeOf(workspaceId, { amountNano: 1n, operationKey: 'c' }));
    await expect(bought).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    const grown = await growHold(sql, { holdId: held.holdId, wantedTotalNano: 400n, operationKey: 'g' });
    expect(grown).toEqual({ amountNano: 300n });
    const settled = await settleHold(sql, { holdId: held.holdId, amountNano: 350n, operationKey: 's' });
    expect(settled).toEqual({ chargedNano: 300n });
    expect(await walletOf(sql, workspaceId)).toEqual({ balanceNano: -300n, heldNano: 0n, availableNano: -300n });
    await topUp(sql, { workspaceId, amountNano: 301n, paymentType: 'one_time', operationKey: 't' });
    expect(await charge(sql, chargeOf(workspaceId, { amountNano: 1n, operationKey: 'c' }))).toMatchObject({
      chargedNano: 1n,
      balanceAfterNano: 0n,
    });
    await requireSoundBooks(sql, workspaceId);
  });

  it('names an unknown workspace', async () => {
    const { sql } = database();
    await expect(walletOf(sql, randomUUID())).rejects.toMatchObject({ code: 'WORKSPACE_NOT_FOUND' });
  });

  it('stays consistent under concurrency', async () => {
    const { sql } = database();
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (operations) => {
        const { workspace } = await seedWorkspace(sql, { balanceNano: 2_000n });
        await Promise.all(operations.map((step) => attempt(sql, workspace.id, step)));
        await requireSoundBooks(sql, workspace.id);
      }),
      { numRuns: 12 },
    );
  });
});

function chargeOf(workspaceId: string, { amountNano, operationKey }: { amountNano: bigint; operationKey: string }) {
  const usage = { service: 'llm', operation: 'chat', resourceId: null, quantity: 3, unit: 'token' } as const;
  return { ...usage, workspaceId, amountNano, operationKey, unitPriceNano: 100n, apiKeyId: null, userId: null };
}

/** Few keys and holds, so that operations collide. */
const operation = fc.record({
  kind: fc.constantFrom('topUp', 'reverse', 'hold', 'growHold', 'settle', 'void', 'refund'),
  slot: fc.integer({ min: 0, max: 3 }),
  key: fc.integer({ min: 0, max: 2 }),
  amountNano: fc.bigInt({ min: 1n, max: 1_500n }),
});
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

async function reverse(sql: Sql, what: { workspaceId: string; amountNano: bigint; operationKey: string }) {
  const [payment] = await sql<{ id: string }[]>`
    select id from payments where workspace_id = ${what.workspaceId} order by position limit 1`;
  return await reverseTopUp(sql, { ...what, paymentType: 'one_time', reversesPaymentId: payment!.id });
}

const EXPECTED_REFUSALS = new Set(['RECHARGE_REQUIRED', 'INTERNAL']);

async function attempt(sql: Sql, workspaceId: string, { kind, slot, key, amountNano }: Operation): Promise<void> {
  const operationKey = `${workspaceId}:${kind}:${slot}:${key}`;
  try {
    if (kind === 'topUp') await topUp(sql, { workspaceId, amountNano, paymentType: 'one_time', operationKey });
    else if (kind === 'reverse') await reverse(sql, { workspaceId, amountNano, operationKey });
    else if (kind === 'refund') {
      const reversesOperationKey = `${workspaceId}:settle:${slot}:${key}`;
      await refund(sql, { workspaceId, reversesOperationKey, operationKey });
    } else {
      const holdKey = `${workspaceId}:hold:${slot}`;
      const wanted = { workspaceId, amountNano: 500n, minimumNano: 1n, operationKey: holdKey };
      const { holdId } = await hold(sql, wanted);
      if (kind === 'growHold') await growHold(sql, { holdId, wantedTotalNano: amountNano, operationKey });
      if (kind === 'settle') await settleHold(sql, { holdId, amountNano, operationKey });
      if (kind === 'void') await voidHold(sql, { holdId, operationKey });
    }
  } catch (error) {
    if (!EXPECTED_REFUSALS.has((error as { code: string }).code)) throw error;
  }
}
