import { TandemError } from '../../machines/errors.ts';
import type { Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { lockWorkspace, operatorWorkspaceId } from './workspaces.ts';

/** Upper limits of what users and workspaces can create. */
export interface Quotas {
  /** Workspaces that the user created and still owns. */
  workspacesPerUser: number;
  /** The operator's workspace has no limit. */
  trunksPerWorkspace: number;
  /** The operator's workspace has no limit. */
  numbersPerWorkspace: number;
}

export const DEFAULT_QUOTAS: Quotas = { workspacesPerUser: 10, trunksPerWorkspace: 20, numbersPerWorkspace: 1000 };

/**
 * Locks the user until the transaction ends, so that concurrent requests cannot exceed the quota. @throws TandemError
 * QUOTA_EXCEEDED
 */
export async function requireWorkspaceQuota(
  tx: Tx,
  { userId, quotas: { workspacesPerUser: limit } }: { userId: number; quotas: Quotas },
): Promise<void> {
  await tx`select id from users where id = ${userId} for no key update`;
  // Not those that others created: a stranger could use up the quota of a user by making them an owner.
  const [row] = await tx<{ created: number }[]>`
    select count(*)::int as created from workspaces w
    join memberships m on m.workspace_id = w.id and m.user_id = w.created_by_user_id and m.role = 'owner'
    where w.created_by_user_id = ${userId}`;
  if ((row?.created ?? 0) < limit) return;
  throw exceeded(
    `You created ${row?.created} workspaces, and this server allows ${limit}. Ask the operator for more.`,
    limit,
  );
}

interface TrunkQuota {
  workspaceId: string;
  quotas: Quotas;
  newTrunks: number;
  /** Numbers already on its trunks count once. */
  newNumbers: readonly string[];
  /** Trunk whose numbers the new ones replace. Default: none. */
  replacedOnTrunk?: string;
}

/** Locks the workspace until the transaction ends. @throws TandemError QUOTA_EXCEEDED */
export async function requireTrunkQuota(
  tx: Tx,
  { workspaceId, quotas, newTrunks, newNumbers, replacedOnTrunk }: TrunkQuota,
): Promise<void> {
  await lockWorkspace(tx, workspaceId);
  if ((await operatorWorkspaceId(tx)) === workspaceId) return;
  const replaced = replacedOnTrunk !== undefined && isUuid(replacedOnTrunk) ? replacedOnTrunk : null;
  const [row] = await tx<{ trunks: number; numbers: number }[]>`
    select count(distinct t.id)::int as trunks, count(n.e164) filter (
      where not n.e164 = any(${[...newNumbers]}) and t.id is distinct from ${replaced}::uuid)::int as numbers
    from trunks t left join numbers n on n.trunk_id = t.id
    where t.owner_workspace_id = ${workspaceId} and t.deleted_at is null`;
  const { trunks, numbers } = row ?? { trunks: 0, numbers: 0 };
  const { trunksPerWorkspace, numbersPerWorkspace } = quotas;
  if (newTrunks > 0 && trunks + newTrunks > trunksPerWorkspace) {
    const message = `The workspace has ${trunks} trunks, and this server allows ${trunksPerWorkspace}.`;
    throw exceeded(`${message} Delete one, or ask the operator for more.`, trunksPerWorkspace);
  }
  const listed = numbers + new Set(newNumbers).size;
  if (newNumbers.length > 0 && listed > numbersPerWorkspace) {
    const message = `The trunks of the workspace would list ${listed} numbers, and this server allows ${numbersPerWorkspace}.`;
    throw exceeded(`${message} Remove some, or ask the operator for more.`, numbersPerWorkspace);
  }
}

function exceeded(message: string, limit: number): TandemError {
  return new TandemError('QUOTA_EXCEEDED', message, { details: { limit } });
}
