import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx } from '../database.ts';
import type { Charge } from '../ledger.ts';
import { priceBookOf } from '../price-book.ts';
import { callIsLive } from './call-row.ts';
import type { InboundRule } from './inbound-rules.ts';
import { jsonb } from './json-columns.ts';
import { chargeMonth, monthlyPrice, type RentedNumber } from './number-rent.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { lockWorkspace } from './workspaces.ts';

export type NumberStatus = 'available' | 'assigned' | 'reserved';

export interface NumberRow {
  e164: string;
  trunkId: string;
  /** Null while in the inventory. */
  workspaceId: string | null;
  status: NumberStatus;
  monthlyPriceNano: bigint;
  createdAt: Date;
  rentedAt: Date | null;
  releasedAt: Date | null;
  /** Null while its trunk only claims it. */
  verifiedAt: Date | null;
  /** Null: inbound calls are rejected. */
  inbound: InboundRule | null;
}

export interface PoolCounts {
  available: number;
  assigned: number;
  reserved: number;
}

/**
 * Counts the numbers on a workspace's trunks: free, its own, and reserved. Ignores those rented by other workspaces.
 */
export async function poolCounts(sql: SqlOrTx, { workspaceId }: { workspaceId: string }): Promise<PoolCounts> {
  const [row] = await sql<PoolCounts[]>`
    select
      count(*) filter (where n.status = 'available' and n.verified_at is not null)::int as available,
      count(*) filter (where n.status = 'assigned' and n.workspace_id = ${workspaceId})::int as assigned,
      count(*) filter (where n.status = 'reserved')::int as reserved
    from numbers n join trunk_workspaces tw on tw.trunk_id = n.trunk_id and tw.workspace_id = ${workspaceId}
    join trunks t on t.id = n.trunk_id and t.deleted_at is null`;
  return row ?? { available: 0, assigned: 0, reserved: 0 };
}

export async function listNumbers(
  sql: SqlOrTx,
  { workspaceId }: { workspaceId: string },
  page: Page,
): Promise<PageOf<NumberRow>> {
  const rows = await sql<NumberRow[]>`
    select * from numbers where workspace_id = ${workspaceId}
    order by rented_at, e164 limit ${page.limit} offset ${offsetOf(page)}`;
  const priced = await withPrices(sql, workspaceId, rows);
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from numbers where workspace_id = ${workspaceId}`;
  return { rows: priced, total: count?.total ?? 0 };
}

/** Lists numbers that the workspace could rent. `pattern` is a run of digits, with `*` for anything between. */
export async function availableNumbers(
  sql: SqlOrTx,
  { workspaceId, pattern, limit }: { workspaceId: string; pattern?: string; limit: number },
): Promise<NumberRow[]> {
  const rows = await sql<NumberRow[]>`
    select n.* from numbers n
    join trunk_workspaces tw on tw.trunk_id = n.trunk_id and tw.workspace_id = ${workspaceId}
    join trunks t on t.id = n.trunk_id and t.status = 'active' and t.deleted_at is null
    where n.status = 'available' and n.verified_at is not null ${pattern === undefined ? sql`` : sql`and n.e164 like ${likePattern(pattern)}`}
    order by n.e164 limit ${limit}`;
  return await withPrices(sql, workspaceId, rows);
}

export interface RentNumberInput {
  workspaceId: string;
  e164: string;
  /** Renting key and user, for the usage log of all months. */
  apiKeyId?: number | null;
  userId?: number | null;
  now: Date;
}

/**
 * Assigns an available number to the workspace and charges the first month; `charge` is null if it is free.
 * @throws TandemError `DIALER_NOT_PROVISIONED` without a trunk, `NUMBER_NOT_FOUND` if no trunk of the workspace has it,
 * `NUMBER_NOT_VERIFIED` while a trunk only claims it, `NUMBER_NOT_AVAILABLE` if it is taken, `INSUFFICIENT_CREDITS`
 */
export async function rentNumber(
  sql: SqlOrTx,
  { workspaceId, e164, apiKeyId = null, userId = null, now }: RentNumberInput,
): Promise<NumberRow & { charge: Charge | null }> {
  return await inTransaction(sql, async (tx) => {
    const trunks = await tx`
      select t.id from trunks t join trunk_workspaces tw on tw.trunk_id = t.id and tw.workspace_id = ${workspaceId}
      where t.status = 'active' and t.deleted_at is null`;
    if (trunks.length === 0)
      throw new TandemError(
        'DIALER_NOT_PROVISIONED',
        'The workspace has no active trunk. Create one with POST /dialer/trunks.',
      );
    const [number] = await tx<NumberRow[]>`
      select n.* from numbers n
      join trunk_workspaces tw on tw.trunk_id = n.trunk_id and tw.workspace_id = ${workspaceId}
      join trunks t on t.id = n.trunk_id and t.status = 'active' and t.deleted_at is null
      where n.e164 = ${e164} order by n.verified_at nulls last limit 1 for update of n`;
    if (!number) throw new TandemError('NUMBER_NOT_FOUND', 'No trunk of the workspace has this number.');
    if (number.verifiedAt === null) {
      throw new TandemError(
        'NUMBER_NOT_VERIFIED',
        'The trunk claims this number, but it is not verified. Call POST /dialer/numbers/verifications.',
      );
    }
    if (number.status !== 'available') throw new TandemError('NUMBER_NOT_AVAILABLE', 'The number is already rented.');
    const [rented] = await tx<(NumberRow & RentedNumber)[]>`
      update numbers set status = 'assigned', workspace_id = ${workspaceId}, rented_at = ${now}, released_at = null,
        rent_months = 0, rented_by_user_id = ${userId}, rented_by_api_key_id = ${apiKeyId}
      where e164 = ${e164} and trunk_id = ${number.trunkId} returning *`;
    const charge = await chargeMonth(tx, rented!, now);
    const [priced] = await withPrices<NumberRow>(tx, workspaceId, [rented!]);
    return { ...priced!, charge };
  });
}

/**
 * Returns a rented number to the inventory, which ends its rent, and clears it as the default caller ID.
 * @throws TandemError `NUMBER_NOT_FOUND` if the workspace has not rented it, `NUMBER_IN_USE` while a live call uses it
 */
export async function releaseNumber(
  sql: SqlOrTx,
  { workspaceId, e164, now }: { workspaceId: string; e164: string; now: Date },
): Promise<NumberRow> {
  return await inTransaction(sql, async (tx) => {
    // Admissions take this lock first, so no call can pick the number meanwhile.
    await lockWorkspace(tx, workspaceId);
    const [number] = await tx<NumberRow[]>`
      select * from numbers where e164 = ${e164} and workspace_id = ${workspaceId} for update`;
    if (!number) throw new TandemError('NUMBER_NOT_FOUND', 'The workspace does not rent this number.');
    const live = await tx`
      select 1 from calls where did = ${e164} and ${callIsLive(tx)} limit 1`;
    if (live.length > 0)
      throw new TandemError('NUMBER_IN_USE', 'A live call uses this number. Release it when the call has ended.');
    await tx`
      update trunk_workspaces set default_caller_id = null
      where workspace_id = ${workspaceId} and default_caller_id = ${e164}`;
    const [released] = await tx<NumberRow[]>`
      update numbers set status = 'available', workspace_id = null, rented_at = null, released_at = ${now}, inbound = null
      where e164 = ${e164} and trunk_id = ${number.trunkId} returning *`;
    return released!;
  });
}

/**
 * Sets the rule for inbound calls to a number; null rejects them.
 * @throws TandemError NUMBER_NOT_FOUND if the workspace does not rent it
 */
export async function setInboundRule(
  sql: SqlOrTx,
  { workspaceId, e164, rule }: { workspaceId: string; e164: string; rule: InboundRule | null },
): Promise<NumberRow> {
  const [number] = await sql<NumberRow[]>`
    update numbers set inbound = ${jsonb(sql, rule)}
    where e164 = ${e164} and workspace_id = ${workspaceId} and status = 'assigned' returning *`;
  if (!number) throw new TandemError('NUMBER_NOT_FOUND', 'The workspace does not rent this number.');
  const [priced] = await withPrices<NumberRow>(sql, workspaceId, [number]);
  return priced!;
}

async function withPrices<Row extends NumberRow>(
  sql: SqlOrTx,
  workspaceId: string,
  rows: readonly Row[],
): Promise<Row[]> {
  const prices = await priceBookOf(sql, workspaceId);
  return rows.map((row) => ({ ...row, monthlyPriceNano: monthlyPrice(row, prices) }));
}

function likePattern(pattern: string): string {
  const escaped = pattern.replace(/[\\%_]/g, (character) => `\\${character}`);
  return `%${escaped.replaceAll('*', '%')}%`;
}
