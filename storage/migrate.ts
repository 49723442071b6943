import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type postgres from 'postgres';
import { TandemError } from '../machines/errors.ts';

/** Any constant that all nodes share. */
const MIGRATION_LOCK = 7_264_331;
const FOLDER = new URL('./migrations/', import.meta.url);
const MIGRATIONS_TABLE = `
  create table if not exists schema_migrations (
    name text primary key, checksum text not null, applied_at timestamptz not null default now())`;

export interface Migration {
  name: string;
  text: string;
  checksum: string;
}

export interface MigrateOptions {
  logger?: { info(fields: object, message: string): void } | undefined;
}

/**
 * Applies `migrations/*.sql` in order of name, each in its own transaction. An advisory lock makes nodes that start
 * together wait for one another. Applied files must never change: their checksums are stored.
 * @throws TandemError `STORAGE_UNAVAILABLE` if a newer version migrated the database, or a file changed
 */
export async function migrate(sql: Pick<postgres.Sql, 'reserve'>, { logger }: MigrateOptions = {}): Promise<void> {
  const migrations = await readMigrations();
  const connection = await sql.reserve();
  try {
    await connection`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await connection.unsafe(MIGRATIONS_TABLE);
    const applied = await connection<{ name: string; checksum: string }[]>`
      select name, checksum from schema_migrations order by name`;
    requireKnown(applied, migrations);
    const isEmpty = applied.length === 0;
    for (const migration of migrations.slice(applied.length)) {
      await connection.unsafe(`begin;\n${statementsOf(migration)}\ncommit;`);
      if (!isEmpty) logger?.info({ migration: migration.name }, 'migration applied');
    }
    if (isEmpty) logger?.info({ migrations: migrations.length }, 'database schema created');
  } catch (error) {
    // A failed multi-statement query leaves the connection in the aborted transaction.
    await connection.unsafe('rollback').catch(() => undefined);
    throw error;
  } finally {
    await connection`select pg_advisory_unlock(${MIGRATION_LOCK})`.catch(() => undefined);
    connection.release();
  }
}

/** Creates the schema up to this migration in a database without our tables, within a transaction of the caller. */
export async function createSchema(tx: Pick<postgres.Sql, 'unsafe'>, upTo: string | undefined): Promise<void> {
  const migrations = await readMigrations();
  await tx.unsafe(MIGRATIONS_TABLE);
  const count = migrations.findIndex(({ name }) => name === upTo) + 1;
  for (const migration of migrations.slice(0, count)) await tx.unsafe(statementsOf(migration));
}

function statementsOf({ name, text, checksum }: Migration): string {
  return `${text}\n;insert into schema_migrations (name, checksum) values ('${name}', '${checksum}');`;
}

function requireKnown(applied: { name: string; checksum: string }[], migrations: Migration[]): void {
  applied.forEach((row, index) => {
    const known = migrations[index];
    if (known?.name !== row.name) {
      throw new TandemError(
        'STORAGE_UNAVAILABLE',
        `The database has migration ${row.name}, which this version does not know. Start a newer version.`,
      );
    }
    if (known.checksum !== row.checksum) {
      throw new TandemError('STORAGE_UNAVAILABLE', `Migration ${row.name} changed after it was applied.`);
    }
  });
}

/** Reads the migrations in order. `name` is the file name without extension. */
export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(FOLDER)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort();
  return await Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, FOLDER), 'utf8');
      return { name: name.slice(0, -4), text, checksum: createHash('sha256').update(text).digest('hex') };
    }),
  );
}
