import { randomUUID } from 'node:crypto';
import type { Sql } from '../storage/database.ts';
import { charge, hold, settleHold, walletOf } from '../storage/ledger.ts';
import { seedWorkspace, USD } from '../test/storage/seed.ts';
import {
  externalIsReachable,
  externalServer,
  openEmbeddedServer,
  type TestServer,
} from '../test/storage/test-database.ts';

/**
 * Compares ledger operations with the minimum that moves money: one row updated in its own transaction. Runs on the
 * embedded Postgres and, if reachable, an external one. Workspaces do not block each other, so one and many are
 * measured. Usage: node bench/ledger.ts [seconds per figure]
 */

const MEASURE_MS = 1000 * Number(process.argv[2] ?? 1);
const WARM_UP_MS = 200;
const WORKSPACES = 16;

/** Purpose of the charges. */
const USAGE = {
  service: 'stt',
  operation: 'transcribe',
  resourceId: null,
  quantity: 1,
  unit: 'minute',
  unitPriceNano: 1000n,
  apiKeyId: null,
  userId: null,
} as const;

type Operation = (workspaceId: string) => Promise<unknown>;

for (const server of [await openEmbeddedServer(), ...((await externalIsReachable()) ? [externalServer()] : [])]) {
  await measureOn(server);
  await server.close();
}
if (!(await externalIsReachable())) console.log('external: no server is reachable (TANDEM_TEST_DATABASE_URL)');

async function measureOn(server: TestServer): Promise<void> {
  await using database = await server.createDatabase({ max: WORKSPACES });
  const { sql } = database;
  const workspaceIds: string[] = [];
  for (let index = 0; index < WORKSPACES; index++) {
    workspaceIds.push((await seedWorkspace(sql, { balanceNano: 1_000_000n * USD })).workspace.id);
  }
  await sql`create table bare (id uuid primary key, balance_nano bigint not null)`;
  for (const id of workspaceIds) await sql`insert into bare ${sql({ id, balanceNano: 0n })}`;
  const operations: [string, Operation][] = [
    ['bare single-row update', (id) => sql`update bare set balance_nano = balance_nano + 1 where id = ${id}`],
    ['read the wallet', (id) => walletOf(sql, id)],
    ['charge', (id) => chargeOnce(sql, id)],
    ['hold and settle', (id) => holdAndSettle(sql, id)],
  ];
  console.log(`${server.kind} Postgres: operations/s (time each takes over a bare update)`);
  const references: number[] = [];
  for (const [name, operation] of operations) {
    const rates = [];
    for (const clients of [1, WORKSPACES]) rates.push(await rateOf(operation, workspaceIds.slice(0, clients)));
    if (references.length === 0) references.push(...rates);
    const figures = rates.map(
      (rate, index) => `${rate.toFixed(0).padStart(6)} (x${(references[index]! / rate).toFixed(2)})`,
    );
    console.log(`  ${name.padEnd(24)} one workspace ${figures[0]}   ${WORKSPACES} side by side ${figures[1]}`);
  }
}

/** Each workspace has one client that runs operations one at a time. */
async function rateOf(operation: Operation, workspaceIds: string[]): Promise<number> {
  const runFor = async (durationMs: number): Promise<number> => {
    const untilMs = performance.now() + durationMs;
    const counts = await Promise.all(
      workspaceIds.map(async (id) => {
        let count = 0;
        for (; performance.now() < untilMs; count++) await operation(id);
        return count;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };
  await runFor(WARM_UP_MS);
  return ((await runFor(MEASURE_MS)) * 1000) / MEASURE_MS;
}

function chargeOnce(sql: Sql, workspaceId: string): Promise<unknown> {
  return charge(sql, { workspaceId, amountNano: 1000n, operationKey: `bench:${randomUUID()}`, ...USAGE });
}

async function holdAndSettle(sql: Sql, workspaceId: string): Promise<void> {
  const key = randomUUID();
  const { holdId } = await hold(sql, {
    workspaceId,
    amountNano: 2000n,
    minimumNano: 1n,
    operationKey: `bench:hold:${key}`,
  });
  await settleHold(sql, { holdId, amountNano: 1000n, operationKey: `bench:settle:${key}`, usage: USAGE });
}
