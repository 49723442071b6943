import assert from 'node:assert/strict';
import type { Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';

/**
 * Asserts the ledger invariants: debits equal credits; balances equal the sums of their entries; held amounts equal
 * open holds; a hold ends once; a charge is refunded once; top-ups, reversals and charges appear in the user-visible
 * lists; only a reversal overdraws a wallet.
 */
export async function requireSoundBooks(sql: Sql, workspaceId: string): Promise<void> {
  const [books] = await sql<
    { unbalanced: number; drifted: number; orphans: number; overRefunded: number; wrongChain: number; untold: number }[]
  >`
    select
      (select count(*)::int from (
        select entry_id from postings p join entries e on e.id = p.entry_id where e.workspace_id = ${workspaceId}
        group by entry_id having sum(p.amount_nano) <> 0) t) as unbalanced,
      (select count(*)::int from accounts a where a.workspace_id = ${workspaceId} and a.balance_nano <>
        (select coalesce(sum(amount_nano), 0) from postings where account_id = a.id)) as drifted,
      (select count(*)::int from holds h where h.workspace_id = ${workspaceId} and
        (select count(*) from entries e where e.hold_id = h.id and e.kind in ('settle', 'void'))
          <> case h.status when 'open' then 0 else 1 end) as orphans,
      (select count(*)::int from (
        select reverses_id from entries where workspace_id = ${workspaceId} and reverses_id is not null
        group by reverses_id having count(*) > 1) t) as over_refunded,
      (select count(*)::int from (
        select balance_before_nano, lag(balance_after_nano) over (order by position) as previous
        from entries where workspace_id = ${workspaceId}) t
        where previous is not null and previous <> balance_before_nano) as wrong_chain,
      (select count(*)::int from entries e where e.workspace_id = ${workspaceId} and (
        (e.kind = 'charge' and not exists (select 1 from usage_logs l where l.entry_id = e.id)) or
        (e.kind in ('top_up', 'reversal') and not exists (select 1 from payments p where p.entry_id = e.id)))) as untold`;
  const sound = { unbalanced: 0, drifted: 0, orphans: 0, overRefunded: 0, wrongChain: 0, untold: 0 };
  assert.deepEqual({ ...books }, sound);
  const [held] = await sql<{ openNano: bigint }[]>`
    select coalesce(sum(amount_nano), 0)::bigint as open_nano from holds
    where workspace_id = ${workspaceId} and status = 'open'`;
  const wallet = await walletOf(sql, workspaceId);
  assert.equal(wallet.heldNano, held?.openNano);
  const reversals = await sql`select 1 from entries where workspace_id = ${workspaceId} and kind = 'reversal'`;
  if (reversals.length === 0) assert.ok(wallet.availableNano >= 0n);
}
