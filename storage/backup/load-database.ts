import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { inTransaction, type Sql, type Tx } from '../database.ts';
import { createSchema, type Migration, readMigrations } from '../migrate.ts';
import type { ArchivedFile, ArchiveReader } from './archive-reader.ts';
import { BackupError } from './backup-error.ts';
import { ledgerTotals, quoted } from './dump-database.ts';
import type { BackupManifest } from './manifest.ts';
import { dropOwnTables, ownSequences, ownTables } from './own-tables.ts';

export async function hasRows(sql: Sql): Promise<boolean> {
  for (const { name } of await ownTables(sql)) {
    const [row] = await sql.unsafe<{ found: boolean }[]>(`select exists(select 1 from public."${name}") as found`);
    if (row?.found) return true;
  }
  return false;
}

/** @throws BackupError `BACKUP_TOO_NEW` for a backup with migrations that this version does not have */
export async function requireKnownMigrations({ migrations }: BackupManifest): Promise<void> {
  const known: Migration[] = await readMigrations();
  for (const [index, { name, checksum }] of migrations.entries()) {
    if (known[index]?.name === name && known[index].checksum === checksum) continue;
    const message = `The backup has the migration ${name}, which this version does not have. Restore it with the version that wrote it, or a newer one.`;
    throw new BackupError('BACKUP_TOO_NEW', message);
  }
}

/** Rejects a newer database, because its tables would block the next upgrade. @throws BackupError `TARGET_TOO_NEW` */
export async function requireKnownTarget(sql: Sql): Promise<void> {
  const known = new Set((await readMigrations()).map(({ name }) => name));
  const unknown = (await appliedMigrations(sql)).find(({ name }) => !known.has(name));
  if (unknown === undefined) return;
  const message = `The database has the migration ${unknown.name} of a newer version. Restore into an empty database or data folder.`;
  throw new BackupError('TARGET_TOO_NEW', message);
}

/** Empty for a database without our tables. */
async function appliedMigrations(sql: Sql): Promise<{ name: string; checksum: string }[]> {
  const [row] = await sql<{ found: boolean }[]>`select to_regclass('public.schema_migrations') is not null as found`;
  if (!row?.found) return [];
  return await sql<{ name: string; checksum: string }[]>`select name, checksum from schema_migrations order by name`;
}

export interface LoadOptions {
  archive: ArchiveReader;
  manifest: BackupManifest;
  /** Node of the target folder. It takes over unfinished work of the backup's node. */
  node: string;
  onTable: (name: string) => void;
}

/**
 * Replaces our tables by those of the backup, in its schema, and verifies all rows, in one transaction. Afterwards the
 * database needs `migrate`.
 * @throws BackupError `RESTORE_NOT_VERIFIED`
 */
export async function loadDatabase(sql: Sql, options: LoadOptions): Promise<void> {
  const { manifest } = options;
  const parts = await partsByTable(options.archive);
  await inTransaction(sql, async (tx) => {
    await dropOwnTables(tx);
    await createSchema(tx, manifest.migrations.at(-1)?.name);
    const foreignKeys = await dropForeignKeys(tx);
    for (const table of manifest.tables) {
      options.onTable(table.name);
      await tx.unsafe(`alter table public."${table.name}" disable trigger user`);
      // Migrations may add rows.
      await tx.unsafe(`delete from public."${table.name}"`);
      const target = await tx.unsafe(`copy public."${table.name}" (${quoted(table.columns)}) from stdin`).writable();
      await pipeline(Readable.from(rowsOf(options.archive, parts.get(table.name) ?? [])), target);
      await tx.unsafe(`alter table public."${table.name}" enable trigger user`);
    }
    // Earlier backups also list sequences of other programs.
    const own = new Set((await ownSequences(tx)).map(({ name }) => name));
    for (const { name, last_value } of manifest.sequences) {
      if (own.has(name))
        await tx`select setval(format('public.%I', ${name}::text)::regclass, ${last_value}::bigint, true)`;
    }
    for (const { statement } of foreignKeys) await tx.unsafe(statement);
    await adoptNode(tx, options);
    await verify(tx, manifest);
  });
}

async function partsByTable(archive: ArchiveReader): Promise<Map<string, ArchivedFile[]>> {
  const parts = new Map<string, ArchivedFile[]>();
  for await (const file of archive.entries()) {
    const [, table] = /^database\/(\w+)\/\d{6}\.copy\.gz$/.exec(file.name) ?? [];
    if (table !== undefined) parts.set(table, [...(parts.get(table) ?? []), file]);
  }
  return parts;
}

async function* rowsOf(archive: ArchiveReader, files: readonly ArchivedFile[]): AsyncGenerator<Buffer> {
  for (const file of files) yield* archive.read(file).pipe(createGunzip());
}

/**
 * Drops foreign keys, because rows may refer to tables that are loaded later. Returns statements that add them again.
 */
async function dropForeignKeys(tx: Tx): Promise<{ statement: string }[]> {
  const keys = await tx<{ tableName: string; name: string; definition: string }[]>`
    select conrelid::regclass::text as table_name, conname::text as name, pg_get_constraintdef(oid) as definition
    from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace
      and conrelid = any(${(await ownTables(tx)).map(({ name }) => name)}::text[]::regclass[])`;
  for (const { tableName, name } of keys) await tx.unsafe(`alter table ${tableName} drop constraint "${name}"`);
  return keys.map(({ tableName, name, definition }) => ({
    statement: `alter table ${tableName} add constraint "${name}" ${definition}`,
  }));
}

async function adoptNode(tx: Tx, { manifest, node }: LoadOptions): Promise<void> {
  if (manifest.node === null || manifest.node === node) return;
  for (const { name, columns } of await ownTables(tx)) {
    // A recording's file can be on another node than the one that owns its call.
    const column = name === 'recordings' ? 'node' : 'owner_node';
    if (!columns.includes(column)) continue;
    await tx`update ${tx(name)} set ${tx(column)} = ${node} where ${tx(column)} = ${manifest.node}`;
  }
}

/** Counts all rows, and compares ledger balances with the sums of postings. */
async function verify(tx: Tx, { tables, ledger }: BackupManifest): Promise<void> {
  for (const { name, rows } of tables) {
    const [count] = await tx<{ rows: number }[]>`select count(*)::int as rows from ${tx(name)}`;
    if (count?.rows !== rows) throw notVerified(`${name} has ${count?.rows} rows instead of ${rows}`);
  }
  const [wrong] = await tx<{ accounts: number; entries: number }[]>`
    select
      (select count(*)::int from accounts a left join (
        select account_id, sum(amount_nano) as total from postings group by account_id
      ) p on p.account_id = a.id where a.balance_nano <> coalesce(p.total, 0)) as accounts,
      (select count(*)::int from (
        select 1 from postings group by entry_id having sum(amount_nano) <> 0
      ) unbalanced) as entries`;
  if (wrong!.accounts > 0) throw notVerified(`${wrong!.accounts} balances differ from the sums of their postings`);
  if (wrong!.entries > 0) throw notVerified(`${wrong!.entries} ledger entries do not sum to zero`);
  if (JSON.stringify(await ledgerTotals(tx)) !== JSON.stringify(ledger)) {
    throw notVerified('the totals of the ledger differ from those of the backup');
  }
}

function notVerified(reason: string): BackupError {
  return new BackupError('RESTORE_NOT_VERIFIED', `The restored database is wrong: ${reason}. It was rolled back.`);
}
