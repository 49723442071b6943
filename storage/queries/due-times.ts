import type { SqlOrTx } from '../database.ts';

/**
 * The given time, but at most `delayMs` after the clock of the database. A node whose clock is ahead must not treat what
 * is waiting as due or the leases of others as expired, and what it stores must not wait for the difference once its
 * clock is right. The time of the statement does not change within it, so a comparison with it can use an index.
 */
export function notLater(sql: SqlOrTx, at: Date, delayMs = 0) {
  return sql`least(${at}::timestamptz, date_trunc('milliseconds', statement_timestamp()) + ${delayMs} * interval '1 millisecond')`;
}

/** End of a lease that begins now, by the given clock or by the database's if that is earlier. */
export function boundedLeaseEnd(sql: SqlOrTx, { now, leaseMs }: { now: Date; leaseMs: number }) {
  return notLater(sql, new Date(now.getTime() + leaseMs), leaseMs);
}
