import type { Sql } from '../../storage/database.ts';

/** A database without a server: `answer` returns the rows of every query, or fails. */
export function fakeSql(answer: () => unknown): Sql {
  // Only a query comes with a raw text; `sql(row)` is a part of one.
  const sql = (text: object) => ('raw' in text ? answer() : {});
  return sql as unknown as Sql;
}
