import type { SqlOrTx } from '../database.ts';

/** Of Postgres' type `json`, which keeps a document as it was written. */
const JSON_OID = 114;

/** A value for a column of type `json`; null is SQL's. */
export function exactJson(sql: SqlOrTx, value: unknown) {
  return value === null ? null : sql.typed(value as never, JSON_OID);
}
