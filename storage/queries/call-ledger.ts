import type { SqlOrTx } from '../database.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export interface CallEntryRow {
  id: string;
  kind: 'hold' | 'hold_grow' | 'settle' | 'void' | 'charge' | 'refund';
  operationKey: string;
  /** Charged or refunded operation, such as `click2call`; null for a hold and its release. */
  operation: string | null;
  description: string;
  availableNano: bigint;
  heldNano: bigint;
  /** Negative for a refund. */
  chargedNano: bigint;
  createdAt: Date;
}

export interface CallTotals {
  chargedNano: bigint;
  /** Still held. */
  heldNano: bigint;
}

interface CallKey {
  workspaceId: string;
  callId: string;
}

/** Lists the entries of a call in order of effect, with their totals. */
export async function listCallEntries(
  sql: SqlOrTx,
  { workspaceId, callId }: CallKey,
  page: Page,
): Promise<PageOf<CallEntryRow> & { totals: CallTotals }> {
  // Charges outside the hold reference the call only in the usage log.
  const ofCall = sql`
    select id from entries where workspace_id = ${workspaceId} and call_id = ${callId}
    union
    select entry_id from usage_logs where workspace_id = ${workspaceId} and resource_id = ${callId}`;
  const amounts = sql`
    coalesce(sum(p.amount_nano) filter (where a.kind = 'held'), 0)::bigint as held_nano,
    coalesce(sum(p.amount_nano) filter (where a.kind = 'revenue'), 0)::bigint as charged_nano`;
  const rows = await sql<CallEntryRow[]>`
    select e.id, e.kind, e.operation_key, e.description, e.created_at,
      (select operation from usage_logs where entry_id = e.id) as operation,
      coalesce(sum(p.amount_nano) filter (where a.kind = 'wallet'), 0)::bigint as available_nano, ${amounts}
    from entries e left join postings p on p.entry_id = e.id left join accounts a on a.id = p.account_id
    where e.id in (${ofCall})
    group by e.id order by e.position limit ${page.limit} offset ${offsetOf(page)}`;
  const [all] = await sql<(CallTotals & { total: number })[]>`
    select count(distinct e.id)::int as total, ${amounts}
    from entries e left join postings p on p.entry_id = e.id left join accounts a on a.id = p.account_id
    where e.id in (${ofCall})`;
  const { total, heldNano, chargedNano } = all!;
  return { rows, total, totals: { heldNano, chargedNano } };
}
