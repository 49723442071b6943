/**
 * A backup is a tar archive: `database/TABLE/000001.copy.gz` and so on (the text format of COPY), `objects/KEY`,
 * `secret-key` if it was asked for, and the checksums of all files so far in `checksums/000001.sha256` and so on, in the
 * format of sha256sum. The manifest comes last, with the checksums of those, and then its own checksum.
 */
export const MANIFEST = 'manifest.json';
export const MANIFEST_CHECKSUM = 'manifest.json.sha256';
export const SECRET_KEY = 'secret-key';
export const CHECKSUMS = /^checksums\/\d{6}\.sha256$/;
export const OBJECTS_PREFIX = 'objects/';

export interface BackupManifest {
  format: 'tandem-backup';
  version: 1;
  /** ISO 8601: the moment whose data this is. */
  created_at: string;
  tandem_version: string;
  /** Of the server whose calls these are; null if it has no data folder here. */
  node: string | null;
  migrations: { name: string; checksum: string }[];
  tables: BackedUpTable[];
  /** Last values of sequences. */
  sequences: { name: string; last_value: string }[];
  objects: { count: number; bytes: number; missing: number };
  ledger: LedgerTotals;
  /** `id` names the key, and does not reveal it. Null: the backup found no key. */
  secret_key: { id: string | null; included: boolean };
  checksums: { name: string; sha256: string }[];
}

export interface BackedUpTable {
  name: string;
  columns: string[];
  rows: number;
}

/** Sums over all workspaces, in nano-USD. */
export interface LedgerTotals {
  entries: number;
  wallets_nano: string;
  held_nano: string;
  revenue_nano: string;
}

/** A part of a table's rows. */
export function partName(table: string, index: number): string {
  return `database/${table}/${String(index).padStart(6, '0')}.copy.gz`;
}

export function checksumsName(index: number): string {
  return `checksums/${String(index).padStart(6, '0')}.sha256`;
}
