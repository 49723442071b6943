import { inTransaction, type Sql, type SqlOrTx, type Tx } from '../database.ts';
import { type Erased, NOTHING_ERASED } from './call-erasure.ts';
import { boundedLeaseEnd, notLater } from './due-times.ts';
import { isUuid } from './identifiers.ts';
import { jsonb } from './json-columns.ts';
import { deleteDeliveries } from './retention.ts';

export interface ErasureRow {
  id: string;
  workspaceId: string;
  /** Null once completed. */
  e164: string | null;
  last4: string;
  status: 'running' | 'completed';
  deleted: Erased;
  createdAt: Date;
  completedAt: Date | null;
}

export async function createErasure(
  tx: Tx,
  { id, workspaceId, e164, now }: { id: string; workspaceId: string; e164: string; now: Date },
): Promise<ErasureRow> {
  const row = { id, workspaceId, e164, last4: lastDigits(e164), status: 'running', createdAt: now };
  const [created] = await tx<ErasureRow[]>`
    insert into erasures ${tx({ ...row, deleted: jsonb(tx, NOTHING_ERASED) } as never)} returning *`;
  return created!;
}

/** The part of an erased number that may be stored. */
export function lastDigits(e164: string): string {
  return e164.slice(-4);
}

export async function getErasure(
  sql: SqlOrTx,
  { id, workspaceId }: { id: string; workspaceId: string },
): Promise<ErasureRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<ErasureRow[]>`select * from erasures where id = ${id} and workspace_id = ${workspaceId}`;
  return row ?? null;
}

export type RunningErasure = ErasureRow & { e164: string };

/** Leases the oldest erasure without a lease. */
export async function claimErasure(
  sql: SqlOrTx,
  { now, leaseMs, except }: { now: Date; leaseMs: number; except: readonly string[] },
): Promise<RunningErasure | null> {
  const [row] = await sql<RunningErasure[]>`
    update erasures set leased_until = ${boundedLeaseEnd(sql, { now, leaseMs })}
    where id = (
      select id from erasures
      where status = 'running' and (leased_until is null or leased_until <= ${notLater(sql, now)}) and id <> all(${except}::uuid[])
      order by created_at for update skip locked limit 1)
    returning *`;
  return row ?? null;
}

export async function releaseErasure(sql: SqlOrTx, id: string): Promise<void> {
  await sql`update erasures set leased_until = null where id = ${id} and status = 'running'`;
}

/** Calls until the request with the number as a party or further leg, in order of creation. */
export async function callsWithNumber(
  sql: SqlOrTx,
  { workspaceId, e164, createdAt }: RunningErasure,
  { after, limit }: { after: string | null; limit: number },
): Promise<{ callId: string }[]> {
  return await sql<{ callId: string }[]>`
    select call_id from calls
    where workspace_id = ${workspaceId} and created_at <= ${createdAt}
      and (customer_number = ${e164} or agent_number = ${e164} or legs @> ${sql.json([{ number: e164 }])}::jsonb)
      ${after === null ? sql`` : sql`and call_id > ${after}`}
    order by call_id limit ${limit}`;
}

/**
 * Deletes some deliveries that contain the number, sent or not. False if no others are left. A batch may delete fewer
 * than it found, because retention deletes too.
 */
export async function eraseDeliveriesNaming(
  sql: Sql,
  { id, workspaceId, e164, createdAt }: RunningErasure,
  { limit }: { limit: number },
): Promise<boolean> {
  return await inTransaction(sql, async (tx) => {
    const naming = await tx<{ id: string }[]>`
      select id from deliveries
      where workspace_id = ${workspaceId} and created_at <= ${createdAt} and position(${e164} in body) > 0
        -- A longer number may begin with it.
        and body ~ ${`\\${e164}(?![0-9])`}
      limit ${limit}`;
    const deliveries = await deleteDeliveries(
      tx,
      naming.map((row) => row.id),
    );
    await addErased(tx, id, { ...NOTHING_ERASED, deliveries });
    return naming.length === limit;
  });
}

export async function addErased(tx: Tx, id: string, erased: Erased): Promise<void> {
  const [row] = await tx<{ deleted: Erased }[]>`select deleted from erasures where id = ${id} for update`;
  if (!row) return;
  const kinds = Object.keys(NOTHING_ERASED) as (keyof Erased)[];
  const total = Object.fromEntries(kinds.map((kind) => [kind, (row.deleted[kind] ?? 0) + erased[kind]]));
  await tx`update erasures set deleted = ${tx.json(total)} where id = ${id}`;
}

/** Null if already completed. */
export async function completeErasure(tx: Tx, { id, now }: { id: string; now: Date }): Promise<ErasureRow | null> {
  const [row] = await tx<ErasureRow[]>`
    update erasures set status = 'completed', e164 = null, completed_at = ${now}, leased_until = null
    where id = ${id} and status = 'running' returning *`;
  return row ?? null;
}

/** Recording of a deleted call, or another deleted object that its owner may still have to upload. */
export interface ErasedRecording {
  id: string;
  workspaceId: string;
  objectKey: string | null;
  /** Its file may be on the disk of this node. */
  ownerNode: string;
  erasedAt: Date;
  /** When a node first deleted its objects. */
  purgedAt: Date | null;
}

/**
 * Returns recordings of deleted calls whose objects must be deleted: at once, and again after `settledBefore`, because
 * an upload or encoding may have been in progress. By id, after `afterId`. In a shared store any node deletes objects,
 * but each also deletes what is still on its own disk: `ownSince` adds those of this node that were deleted since.
 * Recordings of a node that has not done so by `abandonedBefore` are returned to any node.
 */
export async function erasedRecordings(
  sql: SqlOrTx,
  {
    node,
    settledBefore,
    shared,
    afterId,
    limit,
  }: {
    node: string;
    settledBefore: Date;
    /** Null: the store has only objects of this node. */
    shared: { ownSince: Date; abandonedBefore: Date } | null;
    afterId: string | null;
    limit: number;
  },
): Promise<ErasedRecording[]> {
  const isOwn = sql`owner_node = ${node}`;
  const isDue = sql`(purged_at is null or erased_at < ${settledBefore})`;
  return await sql<ErasedRecording[]>`
    select id, workspace_id, object_key, owner_node, erased_at, purged_at from erased_recordings
    where ${
      shared === null
        ? sql`${isOwn} and ${isDue}`
        : sql`(purged_at is null or erased_at < ${shared.abandonedBefore}
            or ${isOwn} and (erased_at < ${settledBefore} or erased_at >= ${shared.ownSince}))`
    }
      ${afterId === null ? sql`` : sql`and id > ${afterId}`}
    order by id limit ${limit}`;
}

/** Records objects that this node has deleted, but that their owner may still have to upload from its disk. */
export async function leaveToOwner(
  tx: Tx,
  { workspaceId, ownerNode, keys, now }: { workspaceId: string; ownerNode: string; keys: readonly string[]; now: Date },
): Promise<void> {
  await tx`
    insert into erased_recordings (id, workspace_id, object_key, owner_node, erased_at, purged_at)
    select gen_random_uuid(), ${workspaceId}, key, ${ownerNode}, ${now}, ${now} from unnest(${keys}::text[]) key`;
}

/** Records that the objects were deleted, the first time or finally. */
export async function markPurged(
  sql: SqlOrTx,
  { id, now, isSettled }: { id: string; now: Date; isSettled: boolean },
): Promise<void> {
  if (isSettled) await sql`delete from erased_recordings where id = ${id}`;
  else await sql`update erased_recordings set purged_at = ${now} where id = ${id}`;
}
