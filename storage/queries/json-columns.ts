import type { SqlOrTx } from '../database.ts';

/** Type `json` keeps a document as written. */
const JSON_OID = 114;
const JSONB_OID = 3802;

/** Value for a `json` column; null becomes SQL null. */
export function exactJson(sql: SqlOrTx, value: unknown) {
  return sql.typed(value, JSON_OID);
}

/** Value for a `jsonb` column; null becomes SQL null. */
export function jsonb(sql: SqlOrTx, value: unknown) {
  return sql.typed(value, JSONB_OID);
}
