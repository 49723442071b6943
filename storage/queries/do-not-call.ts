import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx } from '../database.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { lockWorkspace } from './workspaces.ts';

export interface DoNotCallRow {
  e164: string;
  createdAt: Date;
}

/** Per workspace. */
export const MOST_DO_NOT_CALL = 1_000_000;

interface AddedNumbers {
  workspaceId: string;
  numbers: readonly string[];
  now: Date;
  /** Default `MOST_DO_NOT_CALL`. */
  limit?: number;
}

/**
 * Adds numbers to a workspace's list.
 * @returns the number of new ones
 * @throws TandemError `QUOTA_EXCEEDED`, and adds none
 */
export async function addToDoNotCall(
  sql: SqlOrTx,
  { workspaceId, numbers, now, limit = MOST_DO_NOT_CALL }: AddedNumbers,
): Promise<number> {
  return await inTransaction(sql, async (tx) => {
    await lockWorkspace(tx, workspaceId);
    const added = await tx`
      insert into do_not_call (workspace_id, e164, created_at)
      select ${workspaceId}, e164, ${now} from unnest(${[...new Set(numbers)]}::text[]) as e164
      on conflict do nothing`;
    if (added.count === 0) return 0;
    const [row] = await tx<{ total: number }[]>`
      select count(*)::int as total from do_not_call where workspace_id = ${workspaceId}`;
    if ((row?.total ?? 0) > limit) {
      const message = `The do-not-call list may contain ${limit} numbers. Remove some first.`;
      throw new TandemError('QUOTA_EXCEEDED', message, { details: { limit } });
    }
    return added.count;
  });
}

export async function removeFromDoNotCall(
  sql: SqlOrTx,
  { workspaceId, e164 }: { workspaceId: string; e164: string },
): Promise<boolean> {
  const removed = await sql`delete from do_not_call where workspace_id = ${workspaceId} and e164 = ${e164}`;
  return removed.count > 0;
}

export async function onDoNotCall(
  sql: SqlOrTx,
  { workspaceId, numbers }: { workspaceId: string; numbers: readonly string[] },
): Promise<string[]> {
  const rows = await sql<{ e164: string }[]>`
    select e164 from do_not_call where workspace_id = ${workspaceId} and e164 = any(${[...numbers]}) order by e164`;
  return rows.map(({ e164 }) => e164);
}

/** In ascending order. */
export async function listDoNotCall(
  sql: SqlOrTx,
  { workspaceId }: { workspaceId: string },
  page: Page,
): Promise<PageOf<DoNotCallRow>> {
  const rows = await sql<DoNotCallRow[]>`
    select e164, created_at from do_not_call where workspace_id = ${workspaceId}
    order by e164 limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from do_not_call where workspace_id = ${workspaceId}`;
  return { rows, total: count?.total ?? 0 };
}
