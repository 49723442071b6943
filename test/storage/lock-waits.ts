import type { Sql } from '../../storage/database.ts';

/** Number of connections to the database that wait for a lock. */
export async function lockWaits(sql: Sql): Promise<number> {
  const waiting = await sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return waiting.length;
}
