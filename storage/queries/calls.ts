import type { LegId } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx } from '../database.ts';
import {
  appendEvents,
  type CallEventRow,
  type CallEventWithDelivery,
  type CallRow,
  type CallState,
  type EventSegment,
} from './call-row.ts';
import { isUuid } from './identifiers.ts';
import { holdsLease, isOwnedBy, type LostOwner, type NodeIdentity } from './nodes.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export { type AdmitCallInput, type AdmitCallResult, admitCall, requireRoomForLeg } from './call-admission.ts';
export { type LivePatch, recordMoves } from './call-moves.ts';
export * from './call-row.ts';
export { type SettleCallInput, type SettleCallResult, settleCall } from './call-settlement.ts';

/** The call by its id, in any workspace: for the actors, never for a client. */
export async function getCallById(sql: SqlOrTx, callId: string): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`select * from calls where call_id = ${callId}`;
  return row ?? null;
}

/**
 * The call a client means by a call id or a reference. A reference that was given back by a refused admission may
 * stand on several rows: the one that was admitted wins, then the newest.
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

/** As `getCall`, and by recording id as well. */
export async function findRecordingTarget(sql: SqlOrTx, workspaceId: string, id: string): Promise<CallRow | null> {
  const call = await getCall(sql, { workspaceId, idOrReference: id });
  if (call !== null || !isUuid(id)) return call;
  const [row] = await sql<CallRow[]>`
    select * from calls where workspace_id = ${workspaceId} and recording_id = ${id} limit 1`;
  return row ?? null;
}

export interface CallFilters {
  workspaceId: string;
  state?: CallState;
  /** created_at in [from, to). */
  from?: Date;
  to?: Date;
  agentNumber?: string;
  customerNumber?: string;
  referenceId?: string;
}

/** Newest first. */
export async function listCalls(sql: SqlOrTx, filters: CallFilters, page: Page): Promise<PageOf<CallRow>> {
  const where = sql`
    where workspace_id = ${filters.workspaceId}
    ${filters.state === undefined ? sql`` : sql`and state = ${filters.state}`}
    ${filters.from === undefined ? sql`` : sql`and created_at >= ${filters.from}`}
    ${filters.to === undefined ? sql`` : sql`and created_at < ${filters.to}`}
    ${filters.agentNumber === undefined ? sql`` : sql`and agent_number = ${filters.agentNumber}`}
    ${filters.customerNumber === undefined ? sql`` : sql`and customer_number = ${filters.customerNumber}`}
    ${filters.referenceId === undefined ? sql`` : sql`and reference_id = ${filters.referenceId}`}`;
  const rows = await sql<CallRow[]>`
    select * from calls ${where} order by created_at desc, call_id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from calls ${where}`;
  return { rows, total: count?.total ?? 0 };
}

/** The event log after a sequence, each event with what became of its callback. */
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

/** Whether the call has an event after a sequence. */
export async function hasEvents(
  sql: SqlOrTx,
  { callId, afterSequence }: { callId: string; afterSequence: number },
): Promise<boolean> {
  const [row] = await sql`select 1 from call_events where call_id = ${callId} and sequence > ${afterSequence} limit 1`;
  return row !== undefined;
}

/** Calls that are not final: of one workspace, one trunk, or everywhere. */
export async function countLiveCalls(
  sql: SqlOrTx,
  { workspaceId, trunkId }: { workspaceId?: string; trunkId?: string } = {},
): Promise<number> {
  const [row] = await sql<{ live: number }[]>`
    select count(*)::int as live from calls
    where state in ('pending', 'initiated', 'bridged', 'unknown')
    ${workspaceId === undefined ? sql`` : sql`and workspace_id = ${workspaceId}`}
    ${trunkId === undefined ? sql`` : sql`and trunk_id = ${trunkId}`}`;
  return row?.live ?? 0;
}

/** Keeps what ends a leg if this process dies. Nothing happens to a call that is final or another boot's. */
export async function storeLegHandle(
  sql: SqlOrTx,
  { callId, boot, leg, handle }: { callId: string; boot: string; leg: LegId; handle: unknown },
): Promise<void> {
  await sql`
    update calls set leg_handles = coalesce(leg_handles, '{}') || ${sql.json({ [leg]: handle } as never)}
    where call_id = ${callId} and owner_boot = ${boot} and state in ('pending', 'initiated', 'bridged')`;
}

/** What ends the legs of a call that an earlier boot left. The settlement of the call forgets it. */
export async function legHandlesOf(sql: SqlOrTx, callId: string): Promise<unknown[]> {
  const [row] = await sql<{ legHandles: Record<LegId, unknown> | null }[]>`
    select leg_handles from calls where call_id = ${callId}`;
  return Object.values(row?.legHandles ?? {});
}

/**
 * Takes over the calls of a lost owner: each becomes `unknown`, with a `call.unknown` event unless it already was, and
 * belongs to this boot from now on. Returns all that still have to be resolved, in order of creation, with the events
 * that were added; their event log tells how far they had come. They include those that this boot took over before and did
 * not resolve. Nothing happens if this boot has lost its own lease.
 */
export async function markOrphansUnknown(
  sql: SqlOrTx,
  { lost, owner, seenAt, now }: { lost: LostOwner; owner: NodeIdentity; seenAt: Date | null; now: Date },
): Promise<{ orphans: CallRow[]; events: CallEventRow[] }> {
  return await inTransaction(sql, async (tx) => {
    const taken: { orphans: CallRow[]; events: CallEventRow[] } = { orphans: [], events: [] };
    if (!(await holdsLease(tx, owner))) return taken;
    // No call is `unknown` to the boot that runs it.
    const found = await tx<CallRow[]>`
      select * from calls
      where (${isOwnedBy(tx, lost)} and state in ('pending', 'initiated', 'bridged', 'unknown'))
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
