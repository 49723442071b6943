import type { SqlOrTx } from '../database.ts';
import { usageOf } from './usage.ts';

export type UsageGrouping = 'product' | 'api_key' | 'day';

/** Sums of the usage log. A refund counts on its own day, for the service and key of its charge. */
export interface UsageGroup {
  /** A service, an API key id, or a UTC day such as `2026-01-31`. Null: no API key. */
  key: string | null;
  name: string | null;
  count: number;
  chargedNano: bigint;
  refundedNano: bigint;
}

/** Sums entries in [from, to): highest spend first, or days in order without empty ones. */
export async function summarizeUsage(
  sql: SqlOrTx,
  { groupBy, ...filters }: { workspaceId: string; from: Date; to: Date; groupBy: UsageGrouping },
): Promise<UsageGroup[]> {
  const key = {
    product: sql`u.service`,
    api_key: sql`u.api_key_id::text`,
    day: sql`to_char(u.created_at at time zone 'UTC', 'YYYY-MM-DD')`,
  }[groupBy];
  const order = groupBy === 'day' ? sql`key` : sql`charged_nano - refunded_nano desc, key nulls last`;
  return await sql<UsageGroup[]>`
    select g.*, k.name from (
      select ${key} as key, count(*) filter (where u.direction = 'debit')::int as count,
        coalesce(sum(u.amount_nano) filter (where u.direction = 'debit'), 0)::bigint as charged_nano,
        coalesce(sum(u.amount_nano) filter (where u.direction = 'refund'), 0)::bigint as refunded_nano
      from (${usageOf(sql, filters)}) u group by 1
    ) g left join api_keys k on ${groupBy === 'api_key'} and k.id::text = g.key
    order by ${order}`;
}
