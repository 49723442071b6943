import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, inTransaction } from '../../storage/database.ts';
import { openJobs } from '../../storage/jobs.ts';
import { openGate } from './gate.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

it('a job queue survives repeated termination of its connections', async () => {
  const killer = connect({ url: database.url, max: 1 });
  const jobs = await openJobs({ databaseUrl: database.url });
  const queue = await jobs.open('deliveries');
  const seen = new Set<string>();
  let delivered = Promise.withResolvers<void>();
  await queue.work(
    async (deliveryId) => {
      seen.add(deliveryId);
      delivered.resolve();
    },
    { concurrency: 4 },
  );
  for (let round = 0; round < 3; round += 1) {
    const [{ count } = { count: 0 }] = await killer<{ count: number }[]>`
      select count(pg_terminate_backend(pid))::int as count from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    expect(count).toBeGreaterThan(0);
    while (!seen.has(`delivery-${round}`)) {
      delivered = Promise.withResolvers<void>();
      // The first attempt may hit a dying connection; real producers have a sweeper for that.
      const added = await queue.add(`delivery-${round}`, { delayMs: 0, attempt: round + 1 }).then(
        () => true,
        () => false,
      );
      if (added) await delivered.promise;
    }
  }
  expect(seen.size).toBe(3);
  await jobs.close();
  await killer.end();
}, 30_000);

it('a job queue survives and reports an outage of the database server', async () => {
  const gate = await openGate(database.url);
  const jobs = await openJobs({ databaseUrl: gate.url, namespace: 'outage' });
  const queue = await jobs.open('deliveries');
  const sql = connect({ url: gate.url, max: 2 });
  const arrived = Promise.withResolvers<string>();
  await queue.work(async (deliveryId) => arrived.resolve(deliveryId), { concurrency: 4 });
  await inTransaction(sql, (tx) => tx`select 1`);
  await gate.shut();
  await expect(inTransaction(sql, (tx) => tx`select 1`)).rejects.toMatchObject({ code: AWAY });
  await expect(queue.add('refused', { delayMs: 0, attempt: 1 })).rejects.toThrow();
  await gate.open();
  await inTransaction(sql, (tx) => tx`select 1`);
  await queue.add('after', { delayMs: 0, attempt: 1 });
  expect(await arrived.promise).toBe('after');
  await jobs.close();
  await sql.end();
  await gate.shut();
}, 30_000);

/** The connection is refused, or its loss is noticed only now. */
const AWAY = expect.stringMatching(/^ECONNREFUSED|^CONNECTION_CLOSED|^ECONNRESET/);
