import type { SqlOrTx } from '../database.ts';
import { type CallEventRow, type CallRow, callIsLive, type EventSegment } from './call-row.ts';

/**
 * A database snapshot (`pg_snapshot`, such as `750:753:751`): the transactions that had committed. Sequence numbers do
 * not work as cursors, because transactions may commit in another order than they number their rows.
 */
export type ChangesCursor = string;

export interface LiveCallsNow {
  cursor: ChangesCursor;
  /** Newest first. */
  calls: CallRow[];
  /** There are more live calls. */
  isTruncated: boolean;
}

/** Returns the live calls of a workspace, with a cursor for `callChangesSince`. */
export async function liveCallsNow(
  sql: SqlOrTx,
  { workspaceId, limit }: { workspaceId: string; limit: number },
): Promise<LiveCallsNow> {
  // One statement sees one snapshot.
  const rows = await sql<(CallRow & { cursor: string })[]>`
    select now.cursor, c.* from (select pg_current_snapshot()::text as cursor) now left join lateral (
      select * from calls
      where workspace_id = ${workspaceId} and ${callIsLive(sql)}
      order by created_at desc, call_id limit ${limit + 1}
    ) c on true
    order by c.created_at desc, c.call_id`;
  const calls = rows.flatMap(({ cursor: _, ...call }) => (call.callId === null ? [] : [call as CallRow]));
  return { cursor: rows[0]!.cursor, calls: calls.slice(0, limit), isTruncated: calls.length > limit };
}

/** Current state of a call with the events after the cursor, in order. A `transcript.final` includes its segment. */
export interface CallChange {
  call: CallRow;
  events: ChangeEvent[];
}

export interface ChangeEvent extends CallEventRow {
  segment: (EventSegment & { language: string }) | null;
}

export interface CallChanges {
  cursor: ChangesCursor;
  /** In the order of their latest events. */
  changes: CallChange[];
}

/**
 * Returns the calls of a workspace with events committed after the cursor, without events from before `since`. Null if
 * there are more than `limit` events, or the cursor is invalid or from another database.
 */
export async function callChangesSince(
  sql: SqlOrTx,
  { workspaceId, cursor, since, limit }: { workspaceId: string; cursor: ChangesCursor; since: Date; limit: number },
): Promise<CallChanges | null> {
  if (!isSnapshot(cursor)) return null;
  const rows = await sql<(ChangeEvent & { cursor: string; isKnown: boolean })[]>`
    select now.cursor, pg_snapshot_xmax(${cursor}::pg_snapshot) <= now.xmax as is_known, e.*
    from (
      select pg_current_snapshot()::text as cursor, pg_snapshot_xmax(pg_current_snapshot()) as xmax
    ) now left join lateral (
      select e.*, case when s.call_id is not null then jsonb_build_object('text', s.text, 'startMs', s.start_ms,
        'endMs', s.end_ms, 'confidence', s.confidence, 'language', s.language) end as segment
      from call_events e
      join calls c on c.call_id = e.call_id
      left join call_transcript_segments s on s.call_id = e.call_id and s.event_sequence = e.sequence
      where e.transaction_id >= pg_snapshot_xmin(${cursor}::pg_snapshot)
        -- A restored backup can have rows of transactions that are still to come here.
        and e.transaction_id < now.xmax
        and not pg_visible_in_snapshot(e.transaction_id, ${cursor}::pg_snapshot)
        and c.workspace_id = ${workspaceId} and e.at >= ${since}
      order by e.at, e.call_id, e.sequence limit ${limit + 1}
    ) e on true
    order by e.at, e.call_id, e.sequence`;
  const [{ cursor: next, isKnown }] = rows as unknown as [(typeof rows)[number]];
  const events = rows.flatMap(({ cursor: _, isKnown: __, ...event }) => (event.callId === null ? [] : [event]));
  if (!isKnown || events.length > limit) return null;
  return { cursor: next, changes: await changesOf(sql, { workspaceId, events }) };
}

async function changesOf(
  sql: SqlOrTx,
  { workspaceId, events }: { workspaceId: string; events: ChangeEvent[] },
): Promise<CallChange[]> {
  if (events.length === 0) return [];
  const byCall = Map.groupBy(events, ({ callId }) => callId);
  // Calls may be newer than the events. Then the next events include the call again.
  const calls = await sql<CallRow[]>`
    select * from calls where workspace_id = ${workspaceId} and call_id = any(${[...byCall.keys()]})`;
  const changes = calls.map((call) => {
    // Sort by sequence, because the wall clock may step back.
    const own = byCall.get(call.callId)!.sort((a, b) => a.sequence - b.sequence);
    return { call, events: own };
  });
  return changes.sort((a, b) => latestOf(a) - latestOf(b));
}

function latestOf({ events }: CallChange): number {
  return events.at(-1)!.at.getTime();
}

/** Checks Postgres' syntax `xmin:xmax:xid,xid`, ascending, because cursors come from clients. */
export function isSnapshot(text: string): boolean {
  const [, min, max, running] = /^(\d{1,19}):(\d{1,19}):((?:\d{1,19},)*\d{1,19})?$/.exec(text) ?? [];
  if (min === undefined || max === undefined) return false;
  const xmin = BigInt(min);
  const xmax = BigInt(max);
  if (xmin < 1n || xmin > xmax || xmax > MAX_BIGINT) return false;
  let last = xmin - 1n;
  for (const xid of running === undefined ? [] : running.split(',')) {
    if (BigInt(xid) <= last || BigInt(xid) >= xmax) return false;
    last = BigInt(xid);
  }
  return true;
}

const MAX_BIGINT = 2n ** 63n - 1n;
