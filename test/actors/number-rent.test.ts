import { afterEach, beforeEach, expect, it } from 'vitest';
import { collectNumberRent, type NumberRent } from '../../actors/number-rent.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import { releaseNumber } from '../../storage/queries/numbers.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { eventually } from '../eventually.ts';
import { NOW, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger } from './fakes.ts';
import { type Caller, seedCaller } from './seeds.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let database: TestDatabase;
let caller: Caller;
const open: NumberRent[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  // Rented while numbers were free.
  caller = await seedCaller(database.sql, { balanceNano: 5n * USD });
  const price = { scope: { workspaceId: caller.workspaceId }, item: 'number', value: 2n * USD } as const;
  await setPrice(database.sql, { ...price, now: NOW });
});
afterEach(async () => {
  for (const rent of open.splice(0)) rent.close();
  await database.drop();
});

function start() {
  const clock = createTestClock();
  const logger = createTestLogger();
  const rent = collectNumberRent({ sql: database.sql, clock, logger });
  open.push(rent);
  return { clock, logger, rent };
}

const balance = async () => (await walletOf(database.sql, caller.workspaceId)).balanceNano;

it('rent is collected in the first hour of each month', async () => {
  const { clock } = start();
  await eventually(() => expect(clock.waiting()).toEqual([HOUR_MS]));
  expect(await balance()).toBe(5n * USD);
  clock.jumpTo(new Date('2026-02-02T02:30:00Z'));
  clock.advance(HOUR_MS);
  await eventually(async () => expect(await balance()).toBe(3n * USD));
  const { rows } = await listUsage(database.sql, { workspaceId: caller.workspaceId }, { page: 1, limit: 9 });
  expect(rows).toMatchObject([
    {
      service: 'number',
      operation: 'rent',
      resourceId: caller.did,
      quantity: 1,
      createdAt: new Date('2026-02-02T03:30:00Z'),
    },
  ]);
});

it('rent of months without a running node is collected later', async () => {
  const { clock, rent } = start();
  clock.jumpTo(new Date('2026-03-15T00:00:00Z'));
  await rent.collectAll();
  await rent.collectAll();
  expect(await balance()).toBe(1n * USD);
});

it('an unpaid number stays rented, and its rent is collected once money arrives', async () => {
  const { clock, logger, rent } = start();
  clock.jumpTo(new Date('2026-04-15T00:00:00Z'));
  await rent.collectAll();
  expect(await balance()).toBe(1n * USD);
  expect(logger.messages('warn')).toEqual(['number rent overdue: insufficient wallet balance']);
  expect(JSON.stringify(logger.lines.map(({ fields: { pii, ...fields } }) => fields))).not.toContain(caller.did);
  const { workspaceId } = caller;
  await topUp(database.sql, { workspaceId, amountNano: 10n * USD, paymentType: 'one_time', operationKey: 'more' });
  await rent.collectAll();
  expect(await balance()).toBe(9n * USD);
});

it('a released number costs no more rent', async () => {
  const { clock, rent } = start();
  await releaseNumber(database.sql, { workspaceId: caller.workspaceId, e164: caller.did, now: NOW });
  clock.jumpTo(new Date(NOW.getTime() + 90 * DAY_MS));
  await rent.collectAll();
  expect(await balance()).toBe(5n * USD);
});

it('rent of a month is charged once when several nodes collect together', async () => {
  const nodes = [start(), start(), start()];
  for (const { clock } of nodes) clock.jumpTo(new Date('2026-02-20T00:00:00Z'));
  await Promise.all(nodes.map(({ rent }) => rent.collectAll()));
  expect(await balance()).toBe(3n * USD);
});
