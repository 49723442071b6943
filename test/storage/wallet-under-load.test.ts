import { afterAll, beforeAll, expect, it } from 'vitest';
import { growHold, walletOf } from '../../storage/ledger.ts';
import { admitCall, type CallRow, settleCall } from '../../storage/queries/calls.ts';
import * as fc from '../properties.ts';
import { admission, seedTrunk, seedWorkspace, settlement } from './seed.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const call = fc.record({
  talkSeconds: fc.nat(300),
  growToNano: fc.bigInt(0n, 400_000_000n),
  settles: fc.integer({ min: 1, max: 3 }),
});

it('a wallet stays exact while calls are admitted, extended and settled concurrently', async () => {
  let number = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.bigInt(1n, 1_000_000_000n),
      fc.array(call, { minLength: 1, maxLength: 15 }),
      async (balanceNano, calls) => {
        number += 1;
        const { sql } = database;
        const { workspace } = await seedWorkspace(sql, { balanceNano });
        const e164 = `+9122${String(number).padStart(8, '0')}`;
        await seedTrunk(sql, { workspaceId: workspace.id, channels: 100, numbers: [e164] });
        const lives = await Promise.all(calls.map((wanted) => live(workspace.id, wanted)));
        const admitted = lives.filter((row) => row !== null);
        const wallet = await walletOf(sql, workspace.id);
        const charged = admitted.reduce((sum, row) => sum + (row.costNano ?? 0n), 0n);
        expect(wallet).toEqual({
          balanceNano: balanceNano - charged,
          availableNano: balanceNano - charged,
          heldNano: 0n,
        });
        const [holds] = await sql`
          select count(*)::int as count, count(*) filter (where status = 'open')::int as open
          from holds where workspace_id = ${workspace.id}`;
        expect(holds).toEqual({ count: admitted.length, open: 0 });
        const ends = await sql<{ ends: number }[]>`
          select count(*)::int as ends from entries
          where workspace_id = ${workspace.id} and kind in ('settle', 'void') group by call_id`;
        expect(ends.map((row) => row.ends)).toEqual(admitted.map(() => 1));
        const [accounts] = await sql`
          select bool_and(a.balance_nano = coalesce((select sum(amount_nano) from postings where account_id = a.id), 0)) as exact
          from accounts a where workspace_id = ${workspace.id}`;
        expect(accounts).toEqual({ exact: true });
      },
    ),
    { numRuns: 25 },
  );
});

it('a call is charged once despite concurrent settlements', async () => {
  const { sql } = database;
  const { workspace } = await seedWorkspace(sql, { balanceNano: 1_000_000_000n });
  await seedTrunk(sql, { workspaceId: workspace.id, numbers: ['+912211111111'] });
  const { call: row } = await admitCall(sql, admission({ workspaceId: workspace.id }));
  const results = await Promise.all(Array.from({ length: 1_000 }, () => settle(row, 61)));
  expect(results.filter((result) => result !== null)).toHaveLength(1);
  expect((await walletOf(sql, workspace.id)).balanceNano).toBe(1_000_000_000n - 61_000_000n);
});

/** One call from admission to settlement, or null if rejected for lack of funds. */
async function live(
  workspaceId: string,
  { talkSeconds, growToNano, settles }: { talkSeconds: number; growToNano: bigint; settles: number },
): Promise<CallRow | null> {
  const { sql } = database;
  let row: CallRow;
  try {
    ({ call: row } = await admitCall(sql, admission({ workspaceId })));
  } catch (error) {
    expect(error).toMatchObject({ code: 'RECHARGE_REQUIRED' });
    return null;
  }
  const grown = growHold(sql, { holdId: row.holdId!, wantedTotalNano: growToNano, operationKey: `${row.callId}:grow` });
  // A settlement concurrent to the growing hold must succeed too.
  if (talkSeconds % 2 === 0) await grown;
  const results = await Promise.all(Array.from({ length: settles }, () => settle(row, talkSeconds)));
  await grown;
  const settled = results.filter((result) => result !== null);
  expect(settled).toHaveLength(1);
  return settled[0]!.call;
}

function settle({ callId }: CallRow, talkSeconds: number) {
  return settleCall(database.sql, settlement(callId, { talkSeconds }));
}
