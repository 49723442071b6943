import type { SqlOrTx } from '../database.ts';

/** Type `json` keeps a document as written. */
const JSON_OID = 114;

/** Value for a `json` column; null becomes SQL null. */
export function exactJson(sql: SqlOrTx, value: unknown) {
  return value === null ? null : sql.typed(value, JSON_OID);
}
