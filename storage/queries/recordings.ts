import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { type CallRow, callIsFinal, type RecordingStatus } from './call-row.ts';
import { isUuid } from './identifiers.ts';

export interface RecordingRow {
  id: string;
  callId: string;
  workspaceId: string;
  /**
   * Node whose disk has the growing file, or the object in a store that is not shared. Null in older versions: the
   * call's owner.
   */
  node: string | null;
  status: RecordingStatus;
  /** Object key; null until the object is stored, and after its deletion. */
  objectKey: string | null;
  format: string;
  sizeBytes: number | null;
  durationMs: number | null;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

export interface CreateRecordingInput {
  id: string;
  callId: string;
  workspaceId: string;
  node: string;
  now: Date;
}

export async function createRecording(sql: SqlOrTx, input: CreateRecordingInput): Promise<RecordingRow> {
  const row = {
    id: input.id,
    callId: input.callId,
    workspaceId: input.workspaceId,
    node: input.node,
    status: 'recording',
    createdAt: input.now,
    updatedAt: input.now,
  };
  const [inserted] = await sql<StoredRecording[]>`insert into recordings ${sql(row)} returning *`;
  return fromStored(inserted!);
}

/**
 * Marks the recording of a call whose row is locked as complete on disk. One that started while the call was ending is in
 * no stored move, so it has no row yet.
 */
export async function finishRecording(
  tx: Tx,
  { id, callId, workspaceId, ownerNode: node, now }: FinishedRecording,
): Promise<void> {
  const row = { ...{ id, callId, workspaceId, node, status: 'processing' }, createdAt: now, updatedAt: now };
  await tx`
    insert into recordings ${tx(row)}
    on conflict (id) do update set status = excluded.status, updated_at = excluded.updated_at`;
}

interface FinishedRecording extends Pick<CallRow, 'callId' | 'workspaceId' | 'ownerNode'> {
  id: string;
  now: Date;
}

export interface RecordingPatch {
  node?: string;
  status?: RecordingStatus;
  objectKey?: string | null;
  sizeBytes?: number | null;
  durationMs?: number | null;
}

/**
 * Updates a recording and `calls.recording_status`. Null if it does not exist or, with `unlessStored`, if it is stored
 * or was deleted.
 */
export async function updateRecording(
  sql: SqlOrTx,
  { id, now, patch, unlessStored = false }: { id: string; now: Date; patch: RecordingPatch; unlessStored?: boolean },
): Promise<RecordingRow | null> {
  const changes = { ...Object.fromEntries(Object.entries(patch).filter(([, v]) => v !== undefined)), updatedAt: now };
  return await inTransaction(sql, async (tx) => {
    // Lock the call first, as settlement does; the other order could deadlock.
    await tx`
      select 1 from calls c join recordings r on r.call_id = c.call_id where r.id = ${id} for no key update of c`;
    const [row] = await tx<StoredRecording[]>`
      update recordings set ${tx(changes)}
      where id = ${id} ${unlessStored ? tx`and status not in ('uploaded', 'deleted')` : tx``} returning *`;
    if (!row) return null;
    await tx`
      update calls set recording_status = ${row.status} where call_id = ${row.callId} and recording_id = ${row.id}`;
    return fromStored(row);
  });
}

export async function getRecording(sql: SqlOrTx, id: string): Promise<RecordingRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<StoredRecording[]>`select * from recordings where id = ${id}`;
  return row ? fromStored(row) : null;
}

/** Returns a node's recordings that a crash may have left unfinished, except those of live calls, which still grow. */
export async function unfinishedRecordings(sql: SqlOrTx, { node }: { node: string }): Promise<RecordingRow[]> {
  const rows = await sql<StoredRecording[]>`
    select r.* from recordings r join calls on calls.call_id = r.call_id
    where r.status in ('recording', 'processing') and coalesce(r.node, calls.owner_node) = ${node}
      and ${callIsFinal(sql)}
    order by r.created_at, r.id`;
  return rows.map(fromStored);
}

type StoredRecording = Omit<RecordingRow, 'sizeBytes' | 'durationMs'> & {
  sizeBytes: bigint | null;
  durationMs: bigint | null;
};

function fromStored(row: StoredRecording): RecordingRow {
  return {
    ...row,
    sizeBytes: row.sizeBytes === null ? null : Number(row.sizeBytes),
    durationMs: row.durationMs === null ? null : Number(row.durationMs),
  };
}
