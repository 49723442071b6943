import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { operatorWorkspaceId } from './workspaces.ts';

/** Evidence that the owner of a trunk may present a number. */
export type VerifiedBy = 'operator' | 'inbound_call';

/** An unverified number that a trunk lists. */
export interface NumberClaim {
  e164: string;
  trunkId: string;
  trunkName: string;
  workspaceId: string;
  workspaceName: string;
  createdAt: Date;
}

/**
 * Adds a trunk's numbers. Those of the operator's trunks count as verified. Those of other workspaces are claims, which
 * neither block nor replace others' claims.
 * @throws TandemError `NUMBER_NOT_AVAILABLE` if a number is verified for another trunk
 */
export async function claimNumbers(
  tx: Tx,
  { trunkId, workspaceId, numbers, now }: { trunkId: string; workspaceId: string; numbers: string[]; now: Date },
): Promise<void> {
  const listed = [...new Set(numbers)];
  const isOperators = (await operatorWorkspaceId(tx)) === workspaceId;
  const verification = { verifiedAt: isOperators ? now : null, verifiedBy: isOperators ? 'operator' : null };
  const rows = listed.map((e164) => ({ e164, trunkId, createdAt: now, ...verification }));
  if (rows.length > 0) await tx`insert into numbers ${tx(rows)} on conflict do nothing`;
  // The conflict clause skipped numbers verified for another trunk.
  const taken = await tx`
    select 1 from numbers
    where e164 = any(${listed}) and trunk_id <> ${trunkId} and verified_at is not null limit 1`;
  if (taken.length > 0) {
    throw new TandemError('NUMBER_NOT_AVAILABLE', 'A number in the list is verified for another trunk.');
  }
}

/** Claims, oldest first. */
export async function listClaims(sql: SqlOrTx, { e164 }: { e164?: string } = {}): Promise<NumberClaim[]> {
  return await sql<NumberClaim[]>`
    select n.e164, n.trunk_id, t.name as trunk_name, w.id as workspace_id, w.name as workspace_name, n.created_at
    from numbers n join trunks t on t.id = n.trunk_id join workspaces w on w.id = t.owner_workspace_id
    where n.verified_at is null and t.deleted_at is null ${e164 === undefined ? sql`` : sql`and n.e164 = ${e164}`}
    order by n.created_at, n.e164, n.trunk_id limit 10000`;
}

/**
 * Verifies a trunk's claim to a number. Its workspaces can then rent it, and other trunks cannot list it. Idempotent.
 * @throws TandemError `NUMBER_NOT_FOUND` if the trunk does not list it, `NUMBER_NOT_AVAILABLE` if it is verified for
 * another trunk
 */
export async function verifyNumber(
  sql: SqlOrTx,
  { e164, trunkId, by, now }: { e164: string; trunkId: string; by: VerifiedBy; now: Date },
): Promise<void> {
  await inTransaction(sql, async (tx) => {
    const rows = await tx<{ trunkId: string; verifiedAt: Date | null }[]>`
      select trunk_id, verified_at from numbers where e164 = ${e164} order by trunk_id for update`;
    const claim = rows.find((row) => row.trunkId === trunkId);
    if (claim === undefined) throw new TandemError('NUMBER_NOT_FOUND', 'The trunk does not list this number.');
    if (claim.verifiedAt !== null) return;
    if (rows.some(({ verifiedAt }) => verifiedAt !== null)) {
      throw new TandemError('NUMBER_NOT_AVAILABLE', 'The number is verified for another trunk.');
    }
    await tx`
      update numbers set verified_at = ${now}, verified_by = ${by} where e164 = ${e164} and trunk_id = ${trunkId}`;
  });
}
