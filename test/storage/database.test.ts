import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { afterEach, expect, it } from 'vitest';
import { ARRAY_TYPES } from '../../storage/array-types.ts';
import { connect, inTransaction, openDatabase, type Sql, type Tx } from '../../storage/database.ts';
import { createSchema, readMigrations } from '../../storage/migrate.ts';
import * as fc from '../properties.ts';
import { onEveryServer } from './every-server.ts';

onEveryServer('database', (database) => {
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  async function emptyDatabase(sql: Sql): Promise<void> {
    await sql.unsafe('drop schema public cascade; create schema public');
  }

  function log() {
    const lines: unknown[] = [];
    const keep = (...line: unknown[]) => void lines.push(line);
    return { lines, logger: { info: keep, warn: keep, error: keep } };
  }

  it('migrates once when nodes start together, and logs a new schema as one line', async () => {
    const { sql, url } = database();
    const { lines, logger } = log();
    await emptyDatabase(sql);
    opened.push(...(await Promise.all(Array.from({ length: 4 }, () => openDatabase({ url, max: 2, logger })))));
    const applied = await sql<{ name: string }[]>`select name from schema_migrations order by name`;
    expect(applied[0]?.name).toBe('0001_foundation');
    expect(new Set(applied.map((row) => row.name)).size).toBe(applied.length);
    expect(lines).toEqual([[{ migrations: applied.length }, 'database schema created']]);
  });

  it('logs each migration of an upgrade', async () => {
    const { sql, url } = database();
    const names = (await readMigrations()).map(({ name }) => name);
    await emptyDatabase(sql);
    await createSchema(sql, names.at(-3));
    const { lines, logger } = log();
    opened.push(await openDatabase({ url, max: 1, logger }));
    expect(lines).toEqual(names.slice(-2).map((migration) => [{ migration }, 'migration applied']));
  });

  it('fails for changed or unknown migrations and leaves them untouched', async () => {
    const { sql, url } = database();
    await sql`insert into schema_migrations (name, checksum) values ('9999_from_the_future', 'x')`;
    await expect(openDatabase({ url })).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining('9999_from_the_future'),
    });
    await sql`delete from schema_migrations where name like '9999%'`;
    await sql`update schema_migrations set checksum = 'other'`;
    await expect(openDatabase({ url })).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining('changed after it was applied'),
    });
  });

  it('rolls back a transaction with everything that joined it', async () => {
    const { sql } = database();
    const insert = (tx: typeof sql | Parameters<Parameters<typeof inTransaction>[1]>[0], email: string) =>
      inTransaction(tx, async (inner) => {
        await inner`insert into users (email, created_at) values (${email}, now())`;
      });
    const outer = inTransaction(sql, async (tx) => {
      await insert(tx, 'a@example.com');
      throw new Error('the outer one fails');
    });
    await expect(outer).rejects.toThrow('the outer one fails');
    expect(await sql`select 1 from users`).toHaveLength(0);
  });

  it.each([
    ['while a statement runs', (tx: Tx, closed: Promise<unknown>) => Promise.all([closed, tx`select pg_sleep(10)`])],
    ['between two statements', (tx: Tx, closed: Promise<unknown>) => closed.then(() => tx`select 1`)],
    ['before the commit', (_: Tx, closed: Promise<unknown>) => closed],
    [
      'before a rollback',
      (_: Tx, closed: Promise<unknown>) =>
        closed.then(() => {
          throw new Error('for another reason');
        }),
    ],
  ])('rejects only the transaction whose connection breaks %s', async (_when, work) => {
    const { sql } = database();
    const transaction = inTransaction(sql, async (tx) => {
      const [backend] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await tx`insert into users (email, created_at) values ('a@example.com', now())`;
      const closed = terminate(sql, backend!.pid);
      await work(tx, closed);
    });
    await expect(transaction).rejects.toMatchObject({ code: expect.stringMatching(/^CONNECTION_CLOSED|^E|^57P01/) });
    expect(await inTransaction(sql, (tx) => tx`select 1 from users`)).toHaveLength(0);
  });

  it('rolls back a frozen transaction to release its locks', async () => {
    const { sql, url } = database();
    await sql`insert into users (email, created_at) values ('a@example.com', now())`;
    const frozen = connect({ url, max: 1, idleInTransactionMs: 100 });
    opened.push({ close: () => frozen.end() });
    const isLocked = Promise.withResolvers<void>();
    const transaction = inTransaction(frozen, async (tx) => {
      await tx`select 1 from users for update`;
      isLocked.resolve();
      await new Promise(() => {});
    });
    transaction.catch(() => {});
    await isLocked.promise;
    expect(await sql`update users set email = 'b@example.com' returning email`).toHaveLength(1);
    await expect(transaction).rejects.toThrow();
  });

  it('answers after many broken connections without swallowing queries', {
    timeout: 60_000,
  }, async () => {
    const { sql, url } = database();
    const killer = connect({ url, max: 1 });
    opened.push({ close: () => killer.end() });
    for (let cut = 0; cut < 40; cut += 1) {
      const transaction = inTransaction(sql, async (tx) => {
        const [backend] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
        const terminated = killer`select pg_terminate_backend(${backend!.pid})`.execute();
        for (let count = 0; count < 10_000; count += 1) await tx`select ${count}::int`;
        await terminated;
      });
      await expect(transaction).rejects.toMatchObject({ code: expect.any(String) });
    }
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  it('stores and reads arrays unchanged', async () => {
    const { sql } = database();
    const texts = fc.array(
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('', 'NULL', 'a,b', '{}', '"', '\\', ' ')),
    );
    await fc.assert(
      fc.asyncProperty(texts, async (sent) => {
        const stored = sent.map((text) => text.replaceAll('\0', ''));
        const [row] = await sql<{ kept: string[] }[]>`select ${stored}::text[] as kept`;
        expect(row!.kept).toEqual(stored);
      }),
      { numRuns: 50 },
    );
    const id = randomUUID();
    const [row] = await sql`
      select ${[id]}::uuid[] as ids, ${[1, -2]}::int[] as integers, ${[0.5]}::real[] as reals,
        ${[0.1]}::float8[] as doubles, ${[[1, 2], [3, 4]]}::int[] as nested, ${['true', 'false']}::boolean[] as flags,
        ${['9007199254740993']}::bigint[] as bigints, ${['a', null]}::text[] as gaps, '{}'::text[] as nothing`;
    expect(row).toEqual({
      ...{ ids: [id], integers: [1, -2], reals: [0.5], bigints: [9_007_199_254_740_993n], gaps: ['a', null] },
      ...{
        doubles: [0.1],
        nested: [
          [1, 2],
          [3, 4],
        ],
        flags: [true, false],
        nothing: [],
      },
    });
  });

  it('knows the type of every array column', async () => {
    const { sql } = database();
    const columns = await sql<{ name: string; type: number }[]>`
      select c.relname || '.' || a.attname as name, t.oid::int as type from pg_attribute a
      join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and t.typcategory = 'A' and a.attnum > 0`;
    const known = Object.values(ARRAY_TYPES).map(({ to }) => to);
    expect(columns.length).toBeGreaterThan(0);
    expect(columns.filter(({ type }) => !known.includes(type))).toEqual([]);
  });

  it('makes queries and results of classes that V8 does not keep as a dictionary', async () => {
    const { sql, url } = database();
    opened.push(await openDatabase({ url }));
    setFlagsFromString('--allow-natives-syntax');
    const hasFastProperties = new Function('value', 'return %HasFastProperties(value)') as (value: unknown) => boolean;
    setFlagsFromString('--no-allow-natives-syntax');
    expect(hasFastProperties(sql`select`.constructor)).toBe(true);
    expect(hasFastProperties((await sql`select 1`).constructor)).toBe(true);
  });

  it('reads bigint as bigint and times to the millisecond', async () => {
    const { sql } = database();
    const at = new Date('2026-03-29T01:02:03.004Z');
    const [row] = await sql`select ${9_007_199_254_740_993n}::bigint as big_number, ${at}::timestamptz as at`;
    expect(row).toEqual({ bigNumber: 9_007_199_254_740_993n, at });
  });
});

it.each([
  ['closed port', 'postgres://user:hunter2@127.0.0.1:1/none', /127\.0\.0\.1:1\/none: connect ECONNREFUSED/],
  ['invalid URL', 'hunter2', /DATABASE_URL/],
])('opening an unusable database (%s) fails with a one-line error without its password', async (_why, url, line) => {
  const error: Error = await openDatabase({ url }).then(
    () => new Error('it opened'),
    (reason) => reason,
  );
  expect(error).toMatchObject({ code: 'STORAGE_UNAVAILABLE', message: expect.stringMatching(line) });
  expect(error.message).not.toMatch(/hunter2|\n/);
});

it('an unused pool closes at once', async () => {
  const sql = connect({ url: 'postgres://127.0.0.1:1/none' });
  await expect(sql.end()).resolves.toBeUndefined();
});

/** Resolves once the backend ended and this process had time to notice. */
async function terminate(sql: Sql, pid: number): Promise<void> {
  await sql`select pg_terminate_backend(${pid}, 5000)`;
  // A round trip on another connection finishes later than the disconnect.
  for (let round = 0; round < 20; round += 1) await sql`select ${round}::int`;
}
