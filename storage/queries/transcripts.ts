import { TandemError } from '../../machines/errors.ts';
import type { CallSegment, LegId } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { charge } from '../ledger.ts';
import { costOf, priceBookOf } from '../price-book.ts';
import { type CallRow, callIsFinal } from './call-row.ts';
import { jsonb } from './json-columns.ts';
import { isOwnedBy, type LostOwner } from './nodes.ts';

/** Error of a transcript whose cost exceeded the wallet. */
export const UNPAID = 'INSUFFICIENT_FUNDS';

export interface TranscriptRow {
  callId: string;
  status: 'in_progress' | 'completed' | 'failed';
  error: string | null;
  createdAt: Date;
  updatedAt: Date;
}

export interface TranscriptSegmentRow extends Omit<CallSegment, 'utteranceId'> {
  callId: string;
  /** In the order of recognition, from 1. */
  sequence: number;
  /** Sequence of the segment's event; null if it was recognised after the call's last event. */
  eventSequence: number | null;
}

/** Creates the transcript of a call, unless it has one. */
export async function openTranscript(tx: SqlOrTx, { callId, now }: { callId: string; now: Date }): Promise<void> {
  const row = { callId, status: 'in_progress', createdAt: now, updatedAt: now };
  await tx`insert into call_transcripts ${tx(row)} on conflict do nothing`;
}

export interface SegmentInput {
  segment: CallSegment;
  eventSequence: number | null;
  now: Date;
}

/**
 * Charges for a segment and stores it, in the caller's transaction, which has locked the call. `unpaid`: the wallet
 * does not cover it, and the transcript has failed. `over`: the transcript had already ended. Nothing is stored in both
 * cases.
 */
export async function addSegment(tx: Tx, call: CallRow, input: SegmentInput): Promise<'stored' | 'unpaid' | 'over'> {
  const { callId } = call;
  const [open] = await tx`select 1 from call_transcripts where call_id = ${callId} and status = 'in_progress'`;
  if (!open) return 'over';
  if (!(await isPaid(tx, call, input))) {
    await failTranscript(tx, { callId, error: UNPAID, now: input.now });
    return 'unpaid';
  }
  const { leg, text, language, startMs, endMs, confidence, words } = input.segment;
  await tx`
    insert into call_transcript_segments
      (call_id, sequence, event_sequence, leg, text, language, start_ms, end_ms, confidence, words)
    select ${callId}, count(*) + 1, ${input.eventSequence}, ${leg}, ${text}, ${language}, ${Math.round(startMs)},
      ${Math.round(endMs)}, ${confidence}, ${jsonb(tx, words)}
    from call_transcript_segments where call_id = ${callId}`;
  return 'stored';
}

/** Fails a transcript, even one that never began. False if it had already ended. */
export async function failTranscript(
  tx: SqlOrTx,
  { callId, error, now }: { callId: string; error: string; now: Date },
): Promise<boolean> {
  const row = { callId, status: 'failed', error, createdAt: now, updatedAt: now };
  const changed = await tx`
    insert into call_transcripts ${tx(row)}
    on conflict (call_id) do update set status = 'failed', error = excluded.error, updated_at = excluded.updated_at
    where call_transcripts.status = 'in_progress'
    returning call_id`;
  return changed.length > 0;
}

export interface ConcludeTranscriptInput {
  callId: string;
  /** Segments recognised after the call's last event, in order. */
  late: readonly CallSegment[];
  /** Null if everything was processed. */
  error: string | null;
  now: Date;
}

/** Ends a transcript. Safe to retry. */
export async function concludeTranscript(
  sql: SqlOrTx,
  { callId, late, error, now }: ConcludeTranscriptInput,
): Promise<void> {
  await inTransaction(sql, async (tx) => {
    const [call] = await tx<CallRow[]>`select * from calls where call_id = ${callId} for no key update`;
    if (!call) return;
    for (const segment of late) await addSegment(tx, call, { segment, eventSequence: null, now });
    if (error !== null) await failTranscript(tx, { callId, error, now });
    await tx`
      update call_transcripts set status = 'completed', updated_at = ${now}
      where call_id = ${callId} and status = 'in_progress'`;
  });
}

/**
 * Fails unfinished transcripts of ended calls: of a lost owner, and of calls taken over from it. Returns their number.
 */
export async function failAbandonedTranscripts(
  sql: SqlOrTx,
  { lost, callIds, now }: { lost: LostOwner; callIds: readonly string[]; now: Date },
): Promise<number> {
  const rows = await sql`
    update call_transcripts t set status = 'failed', error = 'INTERRUPTED', updated_at = ${now}
    from calls
    where calls.call_id = t.call_id and t.status = 'in_progress'
      and (calls.call_id = any(${callIds as string[]}) or (${isOwnedBy(sql, lost)}))
      and ${callIsFinal(sql)}
    returning t.call_id`;
  return rows.length;
}

/** In speaking order. Null if the call has no transcript. */
export async function getTranscript(
  sql: SqlOrTx,
  callId: string,
): Promise<{ transcript: TranscriptRow; segments: TranscriptSegmentRow[] } | null> {
  const [transcript] = await sql<TranscriptRow[]>`select * from call_transcripts where call_id = ${callId}`;
  if (!transcript) return null;
  const segments = await sql<TranscriptSegmentRow[]>`
    select * from call_transcript_segments where call_id = ${callId} order by start_ms, sequence`;
  return { transcript, segments };
}

async function isPaid(tx: Tx, call: CallRow, { segment, now }: SegmentInput): Promise<boolean> {
  const count = Math.max(0, segment.endMs - segment.startMs);
  const cost = costOf(await priceBookOf(tx, call.workspaceId), { service: 'stt', count });
  try {
    await charge(tx, {
      ...cost,
      workspaceId: call.workspaceId,
      operationKey: operationKeyOf(call.callId, segment),
      operation: 'call_transcript',
      resourceId: call.callId,
      apiKeyId: call.apiKeyId,
      userId: call.createdByUserId,
      description: `Transcript of call ${call.callId}`,
      at: now,
    });
    return true;
  } catch (error) {
    // Thrown before any write, so the transaction is still usable.
    if (error instanceof TandemError && error.code === 'INSUFFICIENT_CREDITS') return false;
    throw error;
  }
}

function operationKeyOf(callId: string, { leg, utteranceId }: { leg: LegId; utteranceId: number }): string {
  return `transcript:${callId}:${leg}:${utteranceId}`;
}
