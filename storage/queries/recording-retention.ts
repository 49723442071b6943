import { inTransaction, type SqlOrTx } from '../database.ts';
import { recordAudit } from './audit.ts';
import { notLater } from './due-times.ts';

/**
 * Returns recordings whose retention by workspace or operator has ended, oldest first. `mostDays` 0: the workspace
 * decides.
 */
export async function expiredRecordings(
  sql: SqlOrTx,
  { now, mostDays = 0, limit }: { now: Date; mostDays?: number; limit: number },
): Promise<{ id: string }[]> {
  return await sql<{ id: string }[]>`
    select r.id from recordings r join workspaces w on w.id = r.workspace_id
    where r.status = 'uploaded' and r.created_at < ${notLater(sql, now)} - make_interval(hours => 24 * ${keptDays(sql, mostDays)})
    order by r.created_at, r.id limit ${limit}`;
}

/**
 * Marks a recording as deleted, so that the API no longer plays it, and audits that. Its objects are deleted
 * afterwards. False if it is not stored, or its retention was extended.
 */
export async function deleteExpiredRecording(
  sql: SqlOrTx,
  { id, now, mostDays = 0 }: { id: string; now: Date; mostDays?: number },
): Promise<boolean> {
  return await inTransaction(sql, async (tx) => {
    // Lock the call first, as `updateRecording` does.
    await tx`
      select 1 from calls c join recordings r on r.call_id = c.call_id where r.id = ${id} for no key update of c`;
    const [row] = await tx<{ callId: string; workspaceId: string; createdAt: Date; days: number }[]>`
      update recordings r set status = 'deleted', deleted_at = ${now}, updated_at = ${now}
      from workspaces w
      where r.id = ${id} and r.status = 'uploaded' and w.id = r.workspace_id
        and r.created_at < ${notLater(tx, now)} - make_interval(hours => 24 * ${keptDays(tx, mostDays)})
      returning r.call_id, r.workspace_id, r.created_at, ${keptDays(tx, mostDays)} as days`;
    if (!row) return false;
    await tx`
      update calls set recording_status = 'deleted' where call_id = ${row.callId} and recording_id = ${id}`;
    await recordAudit(tx, {
      workspaceId: row.workspaceId,
      actor: null,
      action: 'recording.deleted',
      target: { type: 'recording', id },
      details: { call_id: row.callId, retention_days: row.days },
      requestId: null,
      now,
    });
    return true;
  });
}

export interface RecordingToPurge {
  id: string;
  objectKey: string;
  deletedAt: Date;
  /** Its file may be on the disk of this node. */
  node: string;
}

/** Returns deleted recordings whose objects may still exist, by id. `node`: only those on its disk. */
export async function recordingsToPurge(
  sql: SqlOrTx,
  { node, afterId, limit }: { node: string | null; afterId: string | null; limit: number },
): Promise<RecordingToPurge[]> {
  return await sql<RecordingToPurge[]>`
    select r.id, r.object_key, r.deleted_at, coalesce(r.node, c.owner_node) as node from recordings r join calls c on c.call_id = r.call_id
    where r.status = 'deleted' and r.object_key is not null
      ${node === null ? sql`` : sql`and coalesce(r.node, c.owner_node) = ${node}`}
      ${afterId === null ? sql`` : sql`and r.id > ${afterId}`}
    order by r.id limit ${limit}`;
}

/** Records that the recording's objects are deleted for good. */
export async function forgetObjectsOfRecording(sql: SqlOrTx, id: string): Promise<void> {
  await sql`update recordings set object_key = null where id = ${id} and status = 'deleted'`;
}

/** The shorter of both periods; null if neither is set. */
function keptDays(sql: SqlOrTx, mostDays: number) {
  return sql`least(w.recording_retention_days, nullif(${mostDays}::integer, 0))`;
}
