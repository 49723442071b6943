import type { Sql } from '../database.ts';

export interface ConnectionCounts {
  active: number;
  idle: number;
  idleInTransaction: number;
}

/** Open holds of all workspaces. */
export interface OpenHolds {
  count: number;
  sumNano: bigint;
}

/** Counts connections with this pool's application name, except the counting one. */
export async function countConnections(sql: Sql): Promise<ConnectionCounts> {
  const [row] = await sql<ConnectionCounts[]>`
    select
      count(*) filter (where state = 'active')::int as active,
      count(*) filter (where state = 'idle')::int as idle,
      count(*) filter (where state like 'idle in transaction%')::int as idle_in_transaction
    from pg_stat_activity
    where application_name = current_setting('application_name') and datname = current_database()
      and pid <> pg_backend_pid()`;
  return row!;
}

export async function sumOpenHolds(sql: Sql): Promise<OpenHolds> {
  const [row] = await sql<OpenHolds[]>`
    select count(*)::int as count, coalesce(sum(amount_nano), 0)::bigint as sum_nano from holds where status = 'open'`;
  return row!;
}
