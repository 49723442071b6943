/**
 * Format of a backup, a tar archive: `database/TABLE/000001.copy.gz` and so on (COPY text format), `objects/KEY`,
 * optionally `secret-key`, and checksums of all files so far in `checksums/000001.sha256` and so on (sha256sum format).
 * The manifest comes last, with the checksums of those, followed by its own checksum.
 */
export const MANIFEST = 'manifest.json';
export const MANIFEST_CHECKSUM = 'manifest.json.sha256';
export const SECRET_KEY = 'secret-key';
export const CHECKSUMS = /^checksums\/\d{6}\.sha256$/;
export const OBJECTS_PREFIX = 'objects/';

export interface BackupManifest {
  format: 'tandem-backup';
  version: 1;
  /** ISO 8601: time of the snapshot. */
  created_at: string;
  tandem_version: string;
  /** Node that owns the calls; null if there is no data folder. */
  node: string | null;
  migrations: { name: string; checksum: string }[];
  tables: BackedUpTable[];
  sequences: { name: string; last_value: string }[];
  objects: { count: number; bytes: number; missing: number };
  ledger: LedgerTotals;
  /** `id` identifies the key without revealing it. Null: no key was found. */
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

export function partName(table: string, index: number): string {
  return `database/${table}/${String(index).padStart(6, '0')}.copy.gz`;
}

export function checksumsName(index: number): string {
  return `checksums/${String(index).padStart(6, '0')}.sha256`;
}
