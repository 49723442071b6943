import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type Sql, type SqlOrTx, type Tx } from '../../storage/database.ts';
import { charge, growHold, hold, refund, settleHold, topUp, voidHold, walletOf } from '../../storage/ledger.ts';
import * as fc from '../properties.ts';
import { seedWorkspace } from './seed.ts';
import { requireSoundBooks } from './sound-books.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';

let database: TestDatabase;
let executioner: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  executioner = connect({ url: database.url, max: 1 });
});
afterAll(async () => {
  await executioner.end({ timeout: 1 });
  await database.drop();
});

/** Few keys and holds, so that operations collide. */
const operation = fc.record({
  kind: fc.constantFrom('topUp', 'hold', 'growHold', 'settle', 'void', 'charge', 'refund'),
  slot: fc.integer({ min: 0, max: 3 }),
  key: fc.integer({ min: 0, max: 2 }),
  amountNano: fc.bigInt({ min: 1n, max: 900n }),
  /** Cuts the connection after this statement, before the next or the commit. */
  cutAfter: fc.constantFrom(null, 1, 2, 3, 4, 5, 6, 7, 8),
  /** Repeats a completed operation, as if its response was lost. */
  repeated: fc.boolean(),
});
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

let cuts = 0;

it('the ledger stays consistent under concurrency and cut connections', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 30 }), async (operations) => {
      const { sql } = database;
      const { workspace } = await seedWorkspace(sql, { balanceNano: 2_000n });
      const answers = await Promise.all(operations.map((step) => perform(workspace.id, step)));
      await requireSoundBooks(sql, workspace.id);

      // Acknowledged operations are in the ledger once, and no others.
      const rows = await sql<{ operationKey: string }[]>`
        select operation_key from entries where workspace_id = ${workspace.id}`;
      const booked = new Set(rows.map((row) => row.operationKey));
      expect(booked.size).toBe(rows.length);
      const done = answers.flat();
      expect(done.filter((key) => !booked.has(key))).toEqual([]);

      const open = await sql<{ id: string }[]>`
        select id from holds where workspace_id = ${workspace.id} and status = 'open'`;
      for (const { id } of open) await voidHold(sql, { holdId: id, operationKey: `${id}:void` });
      expect(await walletOf(sql, workspace.id)).toMatchObject({ heldNano: 0n });
      await requireSoundBooks(sql, workspace.id);
    }),
    { numRuns: 15 },
  );
  expect(cuts).toBeGreaterThan(20);
});

const EXPECTED_REFUSALS = ['RECHARGE_REQUIRED', 'INSUFFICIENT_CREDITS', 'INTERNAL'];

/** Retries until there is a response, as a client does. Returns the keys that the ledger must contain. */
async function perform(workspaceId: string, step: Operation): Promise<string[]> {
  let { cutAfter } = step;
  for (;;) {
    try {
      const sql = cutAfter === null ? database.sql : cutting(database.sql, cutAfter);
      const keys = await run(sql, workspaceId, step);
      if (step.repeated) expect(await run(database.sql, workspaceId, step)).toEqual(keys);
      return keys;
    } catch (error) {
      const { code } = error as { code: string };
      if (EXPECTED_REFUSALS.includes(code)) return [];
      if (!/^CONNECTION_|^57P01$|^E[A-Z]+$/.test(code)) throw error;
      cutAfter = null;
    }
  }
}

/** A pool whose connection ends after the n-th statement of a transaction. */
function cutting(sql: Sql, cutAfter: number): Sql {
  let statements = 0;
  const cuttingTx = (tx: Tx, pid: number) =>
    new Proxy(tx, {
      apply(target, self, args) {
        // `tx(row)` is not a query.
        const isStatement = Array.isArray((args[0] as { raw?: unknown })?.raw);
        if (isStatement) statements += 1;
        const query: Promise<unknown> = Reflect.apply(target, self, args);
        if (!isStatement || statements !== cutAfter) return query;
        const cutAfterwards = query.then((rows) => cut(pid).then(() => rows));
        // Already sent.
        return Object.assign(cutAfterwards, { execute: () => cutAfterwards });
      },
    });
  return new Proxy(sql, {
    get(target, key) {
      if (key !== 'begin') return Reflect.get(target, key);
      return (work: (tx: Tx) => unknown) => target.begin(async (tx) => await work(cuttingTx(tx, await backendOf(tx))));
    },
  });
}

async function backendOf(tx: Tx): Promise<number> {
  const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row!.pid;
}

async function cut(pid: number): Promise<void> {
  cuts += 1;
  await executioner`select pg_terminate_backend(${pid})`;
}

async function run(sql: SqlOrTx, workspaceId: string, { kind, slot, key, amountNano }: Operation): Promise<string[]> {
  const operationKey = `${workspaceId}:${kind}:${slot}:${key}`;
  switch (kind) {
    case 'topUp':
      await topUp(sql, { workspaceId, amountNano, paymentType: 'one_time', operationKey });
      return [operationKey];
    case 'charge': {
      const usage = { service: 'tts', operation: 'synthesise', quantity: 1, unit: 'character' } as const;
      const who = { resourceId: null, unitPriceNano: amountNano, apiKeyId: null, userId: null };
      await charge(sql, { ...usage, ...who, workspaceId, amountNano, operationKey });
      return [operationKey];
    }
    case 'refund': {
      const reversed = slot % 2 === 0 ? 'charge' : 'settle';
      const reversesOperationKey = `${workspaceId}:${reversed}:${slot}:${key}`;
      // Another refund may have come first; then this one does nothing.
      await refund(sql, { workspaceId, reversesOperationKey, operationKey });
      return [];
    }
    default:
      return await runOnHold(sql, { workspaceId, kind, slot, amountNano, operationKey });
  }
}

interface HoldOperation extends Pick<Operation, 'slot' | 'amountNano'> {
  workspaceId: string;
  kind: 'hold' | 'growHold' | 'settle' | 'void';
  operationKey: string;
}

async function runOnHold(
  sql: SqlOrTx,
  { workspaceId, kind, slot, amountNano, operationKey }: HoldOperation,
): Promise<string[]> {
  const holdKey = `${workspaceId}:hold:${slot}`;
  const { holdId } = await hold(sql, { workspaceId, amountNano: 500n, minimumNano: 1n, operationKey: holdKey });
  if (kind === 'hold') return [holdKey];
  // An ended hold does not grow.
  if (kind === 'growHold') await growHold(sql, { holdId, wantedTotalNano: amountNano, operationKey });
  if (kind === 'growHold') return [holdKey];
  if (kind === 'settle') await settleHold(sql, { holdId, amountNano, operationKey });
  else await voidHold(sql, { holdId, operationKey });
  return [holdKey, operationKey];
}
