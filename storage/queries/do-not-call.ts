import type { SqlOrTx } from '../database.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export interface DoNotCallRow {
  e164: string;
  createdAt: Date;
}

/** Adds numbers to the list of a workspace. Returns how many were not on it. */
export async function addToDoNotCall(
  sql: SqlOrTx,
  { workspaceId, numbers, now }: { workspaceId: string; numbers: readonly string[]; now: Date },
): Promise<number> {
  const added = await sql`
    insert into do_not_call (workspace_id, e164, created_at)
    select ${workspaceId}, e164, ${now} from unnest(${[...new Set(numbers)]}::text[]) as e164
    on conflict do nothing`;
  return added.count;
}

/** Whether the number was on the list. */
export async function removeFromDoNotCall(
  sql: SqlOrTx,
  { workspaceId, e164 }: { workspaceId: string; e164: string },
): Promise<boolean> {
  const removed = await sql`delete from do_not_call where workspace_id = ${workspaceId} and e164 = ${e164}`;
  return removed.count > 0;
}

/** Those of the numbers that are on the list, in one query. */
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
