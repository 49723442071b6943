import type { SqlOrTx } from '../database.ts';

/** Operation key of a memory's charge after this number of attempts: 0 at ingestion, more at each retry. */
export function memoryChargeKey(memoryId: string, attempts: number): string {
  return `memory:${memoryId}:${attempts}`;
}

/** Far more attempts than between two charges. */
const MOST_ATTEMPTS_BACK = 200;

/** Finds a memory's last charge and the number of attempts before it. Null: never charged. */
export async function lastMemoryCharge(
  sql: SqlOrTx,
  { memoryId, attempts }: { memoryId: string; attempts: number },
): Promise<{ operationKey: string; attempts: number } | null> {
  const before = Array.from({ length: Math.min(attempts, MOST_ATTEMPTS_BACK) + 1 }, (_, back) => attempts - back);
  const keys = before.map((each) => memoryChargeKey(memoryId, each));
  const rows = await sql<{ operationKey: string }[]>`
    select operation_key from entries where operation_key = any(${keys}) and kind = 'charge'`;
  const charged = new Set(rows.map(({ operationKey }) => operationKey));
  const last = before.find((each) => charged.has(memoryChargeKey(memoryId, each)));
  return last === undefined ? null : { operationKey: memoryChargeKey(memoryId, last), attempts: last };
}

export interface MemoryUsageQuery {
  workspaceId: string;
  /** Null: all users. */
  userId: number | null;
  /** Charges in [from, to). */
  from: Date;
  to: Date;
}

/** Sums spending by operation, without refunded charges. */
export async function memoryUsage(
  sql: SqlOrTx,
  { workspaceId, userId, from, to }: MemoryUsageQuery,
): Promise<{ operation: string; count: number; units: number; amountNano: bigint }[]> {
  return await sql<{ operation: string; count: number; units: number; amountNano: bigint }[]>`
    select l.operation, count(*)::int as count, sum(l.quantity)::float8 as units,
      (sum(e.result_nano) - coalesce(sum(given.result_nano), 0))::bigint as amount_nano
    from usage_logs l join entries e on e.id = l.entry_id
    left join entries given on given.reverses_id = e.id
    where l.workspace_id = ${workspaceId} and l.service = 'memory' and e.kind = 'charge'
      and (given.id is null or given.result_nano < e.result_nano)
      and e.created_at >= ${from} and e.created_at < ${to}
      ${userId === null ? sql`` : sql`and l.user_id = ${userId}`}
    group by l.operation order by l.operation`;
}
