import type { LegId } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import {
  appendEvents,
  type CallEventRow,
  type CallEventWithDelivery,
  type CallRow,
  callIsFinal,
  callIsLive,
  type EventSegment,
} from './call-row.ts';
import { isUuid } from './identifiers.ts';
import { jsonb } from './json-columns.ts';
import { holdsLease, isOwnedBy, type LostOwner, type NodeIdentity } from './nodes.ts';

export {
  type AdmitCallInput,
  type AdmitCallResult,
  admitCall,
  admitCalls,
  mayAdmitTogether,
  requireRoomForLeg,
} from './call-admission.ts';
export { type LivePatch, recordMoves } from './call-moves.ts';
export * from './call-row.ts';
export { listCalls } from './call-search.ts';
export { type SettleCallInput, type SettleCallResult, settleCall } from './call-settlement.ts';

/** Finds a call by id in any workspace. Not for client requests. */
export async function getCallById(sql: SqlOrTx, callId: string): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`select * from calls where call_id = ${callId}`;
  return row ?? null;
}

/** Returns those calls that are not erased, and keeps them from being erased until the transaction ends. */
export async function keepCalls(tx: Tx, callIds: readonly string[]): Promise<Set<string>> {
  const rows = await tx<{ callId: string }[]>`
    select call_id from calls where call_id = any(${[...callIds]}) order by call_id for key share`;
  return new Set(rows.map(({ callId }) => callId));
}

/**
 * Finds a call by id or reference. A reference freed by a rejected admission may be on several rows: prefers the
 * admitted one, then the newest.
 */
export async function getCall(
  sql: SqlOrTx,
  { workspaceId, idOrReference }: { workspaceId: string; idOrReference: string },
): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`
    select * from calls
    where workspace_id = ${workspaceId} and (call_id = ${idOrReference} or reference_id = ${idOrReference})
    order by call_id = ${idOrReference} desc, state <> 'rejected' desc, created_at desc
    limit 1`;
  return row ?? null;
}

/** As `getCall`, also by recording id. */
export async function findRecordingTarget(sql: SqlOrTx, workspaceId: string, id: string): Promise<CallRow | null> {
  const call = await getCall(sql, { workspaceId, idOrReference: id });
  if (call !== null || !isUuid(id)) return call;
  const [row] = await sql<CallRow[]>`
    select * from calls where workspace_id = ${workspaceId} and recording_id = ${id} limit 1`;
  return row ?? null;
}

/** Returns the event log after a sequence, with the callback status of each event. */
export async function listCallEvents(
  sql: SqlOrTx,
  { callId, afterSequence = 0 }: { callId: string; afterSequence?: number },
): Promise<CallEventWithDelivery[]> {
  const rows = await sql<
    (CallEventRow & {
      deliveryStatus: 'pending' | 'delivered' | 'failed' | null;
      deliveryAttempts: number;
      deliveryLastHttpStatus: number | null;
      deliveryNextAttemptAt: Date | null;
      segment: EventSegment | null;
    })[]
  >`
    select e.*, d.status as delivery_status, d.attempts as delivery_attempts,
      d.last_http_status as delivery_last_http_status, d.next_attempt_at as delivery_next_attempt_at,
      case when s.call_id is not null then jsonb_build_object(
        'text', s.text, 'startMs', s.start_ms, 'endMs', s.end_ms, 'confidence', s.confidence) end as segment
    from call_events e
    left join call_transcript_segments s on s.call_id = e.call_id and s.event_sequence = e.sequence
    left join lateral (
      select * from deliveries where call_id = e.call_id and event_sequence = e.sequence
      order by created_at desc limit 1
    ) d on true
    where e.call_id = ${callId} and e.sequence > ${afterSequence}
    order by e.sequence`;
  return rows.map(({ deliveryStatus, deliveryAttempts, deliveryLastHttpStatus, deliveryNextAttemptAt, ...event }) => ({
    ...event,
    delivery:
      deliveryStatus === null
        ? null
        : {
            status: deliveryStatus,
            attempts: deliveryAttempts,
            lastHttpStatus: deliveryLastHttpStatus,
            nextAttemptAt: deliveryNextAttemptAt,
          },
  }));
}

export async function hasEvents(
  sql: SqlOrTx,
  { callId, afterSequence }: { callId: string; afterSequence: number },
): Promise<boolean> {
  const [row] = await sql`select 1 from call_events where call_id = ${callId} and sequence > ${afterSequence} limit 1`;
  return row !== undefined;
}

/** Stores a handle that ends a leg if this process dies. No effect on final calls or another boot's. */
export async function storeLegHandle(
  sql: SqlOrTx,
  { callId, boot, leg, handle }: { callId: string; boot: string; leg: LegId; handle: unknown },
): Promise<void> {
  await sql`
    update calls set leg_handles = coalesce(leg_handles, '{}') || ${jsonb(sql, { [leg]: handle })}
    where call_id = ${callId} and owner_boot = ${boot} and state in ('pending', 'initiated', 'bridged')`;
}

/** Returns the leg handles of an earlier boot's call. Settlement deletes them unless the SIP server is away. */
export async function legHandlesOf(sql: SqlOrTx, callId: string): Promise<unknown[]> {
  const [row] = await sql<{ legHandles: Record<LegId, unknown> | null }[]>`
    select leg_handles from calls where call_id = ${callId}`;
  return Object.values(row?.legHandles ?? {});
}

/** Whether a leg of a live call, on any node, has this Call-ID. */
export async function isOwnDialog(sql: SqlOrTx, sipCallId: string): Promise<boolean> {
  const [row] = await sql`
    select 1 from calls cross join lateral jsonb_each(leg_handles) as leg (id, handle)
    where ${callIsLive(sql)} and handle->>'callId' = ${sipCallId} limit 1`;
  return row !== undefined;
}

/** Older legs have certainly ended. */
const LEGS_FORGOTTEN_AFTER_S = 3_600;

/** Handles of legs that a lost owner could not end, because its SIP server was away when it settled their calls. */
export async function forgottenLegsOf(sql: SqlOrTx, lost: LostOwner, now: Date): Promise<unknown[]> {
  const rows = await sql<{ legHandles: Record<LegId, unknown> }[]>`
    select leg_handles from calls
    where ${isForgotten(sql, lost)} and end_time > ${now}::timestamptz - make_interval(secs => ${LEGS_FORGOTTEN_AFTER_S})`;
  return rows.flatMap(({ legHandles }) => Object.values(legHandles));
}

/** Deletes the handles that `forgottenLegsOf` returns, and older ones. */
export async function deleteForgottenLegs(sql: SqlOrTx, lost: LostOwner): Promise<void> {
  await sql`update calls set leg_handles = null where ${isForgotten(sql, lost)}`;
}

function isForgotten(sql: SqlOrTx, lost: LostOwner) {
  return sql`${isOwnedBy(sql, lost)} and leg_handles is not null and ${callIsFinal(sql)}`;
}

/**
 * Takes over the calls of a lost owner. Each becomes `unknown`, with a `call.unknown` event unless it already was.
 * Returns all unresolved calls in order of creation, including earlier takeovers of this boot, with the added events.
 * No effect if this boot has lost its own lease.
 */
export async function markOrphansUnknown(
  sql: SqlOrTx,
  { lost, owner, seenAt, now }: { lost: LostOwner; owner: NodeIdentity; seenAt: Date | null; now: Date },
): Promise<{ orphans: CallRow[]; events: CallEventRow[] }> {
  return await inTransaction(sql, async (tx) => {
    const taken: { orphans: CallRow[]; events: CallEventRow[] } = { orphans: [], events: [] };
    if (!(await holdsLease(tx, owner))) return taken;
    // A boot's own running calls are never `unknown`.
    const found = await tx<CallRow[]>`
      select * from calls
      where (${isOwnedBy(tx, lost)} and ${callIsLive(tx)})
        or (owner_node = ${owner.node} and owner_boot = ${owner.boot} and state = 'unknown')
      order by created_at, call_id for no key update`;
    for (const orphan of found) {
      const isNew = orphan.state !== 'unknown';
      if (isNew) {
        const move = {
          event: 'call.unknown',
          state: 'unknown',
          leg: null,
          sipStatus: null,
          hangupCause: null,
        } as const;
        const detail = `The node stopped while the call was ${orphan.state}.`;
        const added = await appendEvents(tx, {
          callId: orphan.callId,
          lastSequence: orphan.seq,
          moves: [{ ...move, at: now, detail }],
        });
        taken.events.push(...added);
      }
      const [row] = await tx<CallRow[]>`
        update calls set state = 'unknown', seq = seq + ${isNew ? 1 : 0}, owner_node = ${owner.node},
          owner_boot = ${owner.boot}, owner_seen_at = coalesce(owner_seen_at, ${seenAt})
        where call_id = ${orphan.callId} returning *`;
      if (row) taken.orphans.push(row);
    }
    return taken;
  });
}
