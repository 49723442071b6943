import type { SqlOrTx } from '../database.ts';
import type { Service } from '../price-book.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/**
 * `partial` and `failed`: the wallet covered part or none of the owed amount. `refunded`: refunded later, wholly or
 * partly.
 */
export type UsageStatus = 'succeeded' | 'partial' | 'failed' | 'refunded';

export interface UsageRow {
  /** Id of the ledger entry, as in `x-billing-tx`. */
  id: string;
  position: bigint;
  service: Service;
  operation: string;
  resourceId: string | null;
  /** In units, rounded to nine decimals; the amount is exact. */
  quantity: number;
  unit: string;
  unitPriceNano: bigint;
  amountNano: bigint;
  direction: 'debit' | 'refund';
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
  status: UsageStatus;
  reversesId: string | null;
  apiKeyId: number | null;
  userId: number | null;
  createdAt: Date;
}

export interface UsageFilters {
  workspaceId: string;
  service?: Service;
  status?: UsageStatus;
  /** created_at in [from, to). */
  from?: Date;
  to?: Date;
  apiKeyId?: number;
}

/** Newest first. */
export async function listUsage(sql: SqlOrTx, filters: UsageFilters, page: Page): Promise<PageOf<UsageRow>> {
  const rows = await sql<UsageRow[]>`
    select * from (${usageOf(sql, filters)}) u order by position desc limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from (${usageOf(sql, filters)}) u`;
  return { rows, total: count?.total ?? 0 };
}

/** Returns up to `limit` entries after a position, oldest first. */
export async function usageAfter(
  sql: SqlOrTx,
  filters: UsageFilters,
  { position, limit }: { position: bigint; limit: number },
): Promise<UsageRow[]> {
  return await sql<UsageRow[]>`
    select * from (${usageOf(sql, filters)}) u where position > ${position} order by position limit ${limit}`;
}

/** One row for each entry. */
export function usageOf(sql: SqlOrTx, { workspaceId, service, status, from, to, apiKeyId }: UsageFilters) {
  const statusOf = sql`
    case
      when e.reverses_id is not null then 'succeeded'
      when exists (select 1 from entries r where r.reverses_id = e.id) then 'refunded'
      when e.result_nano = e.requested_nano then 'succeeded'
      when e.result_nano = 0 then 'failed'
      else 'partial'
    end`;
  return sql`
    select e.id, l.position, l.service, l.operation, l.resource_id, l.quantity::float8 as quantity, l.unit,
      l.unit_price_nano, e.result_nano as amount_nano,
      case when e.reverses_id is null then 'debit' else 'refund' end as direction,
      e.balance_before_nano, e.balance_after_nano, ${statusOf} as status, e.reverses_id, l.api_key_id, l.user_id,
      e.created_at
    from usage_logs l join entries e on e.id = l.entry_id
    where l.workspace_id = ${workspaceId}
      ${service === undefined ? sql`` : sql`and l.service = ${service}`}
      ${status === undefined ? sql`` : sql`and ${statusOf} = ${status}`}
      ${from === undefined ? sql`` : sql`and e.created_at >= ${from}`}
      ${to === undefined ? sql`` : sql`and e.created_at < ${to}`}
      ${apiKeyId === undefined ? sql`` : sql`and l.api_key_id = ${apiKeyId}`}`;
}
