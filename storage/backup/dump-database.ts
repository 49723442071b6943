import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Tx } from '../database.ts';
import type { ArchiveWriter } from './archive-writer.ts';
import { type BackedUpTable, type BackupManifest, type LedgerTotals, partName } from './manifest.ts';
import { ownSequences, ownTables } from './own-tables.ts';

const compress = promisify(gzip);
/** Part size before compression. */
const PART_BYTES = 4 * 1024 * 1024;
const NEWLINE = 10;

export interface DatabaseDump extends Pick<BackupManifest, 'migrations' | 'tables' | 'sequences' | 'ledger'> {}

/** Adds every table to the archive, in parts. The transaction needs one snapshot: `repeatable read`. */
export async function dumpDatabase(
  tx: Tx,
  { archive, onTable }: { archive: ArchiveWriter; onTable: (name: string) => void },
): Promise<DatabaseDump> {
  const migrations = await tx<{ name: string; checksum: string }[]>`
    select name, checksum from schema_migrations order by name`;
  const tables: BackedUpTable[] = [];
  for (const { name, columns } of await ownTables(tx)) {
    onTable(name);
    const source = await tx.unsafe(`copy public."${name}" (${quoted(columns)}) to stdout`).readable();
    tables.push({ name, columns, rows: await dumpRows(source, { archive, name }) });
  }
  // Sequences are not part of the snapshot, so they are never below the rows' values.
  const sequences = (await ownSequences(tx)).filter(({ lastValue }) => lastValue !== null);
  return {
    migrations: migrations.map(({ name, checksum }) => ({ name, checksum })),
    tables,
    sequences: sequences.map(({ name, lastValue }) => ({ name, last_value: String(lastValue) })),
    ledger: await ledgerTotals(tx),
  };
}

/** Sums over all workspaces. */
export async function ledgerTotals(tx: Tx): Promise<LedgerTotals> {
  const [row] = await tx<{ entries: number; wallets: string; held: string; revenue: string }[]>`
    select (select count(*)::int from entries) as entries,
      coalesce(sum(balance_nano) filter (where kind = 'wallet'), 0)::text as wallets,
      coalesce(sum(balance_nano) filter (where kind = 'held'), 0)::text as held,
      coalesce(sum(balance_nano) filter (where kind = 'revenue'), 0)::text as revenue
    from accounts`;
  const { entries, wallets, held, revenue } = row!;
  return { entries, wallets_nano: wallets, held_nano: held, revenue_nano: revenue };
}

export function quoted(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(', ');
}

/** Returns the number of rows, which are one line each in text format. */
async function dumpRows(
  source: AsyncIterable<Buffer>,
  { archive, name }: { archive: ArchiveWriter; name: string },
): Promise<number> {
  let rows = 0;
  let parts = 0;
  let bytes = 0;
  let chunks: Buffer[] = [];
  const flush = async () => {
    if (bytes === 0) return;
    parts += 1;
    await archive.addBuffer(partName(name, parts), await compress(Buffer.concat(chunks)));
    [chunks, bytes] = [[], 0];
  };
  for await (const chunk of source) {
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) rows += 1;
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= PART_BYTES) await flush();
  }
  await flush();
  return rows;
}
