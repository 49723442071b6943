import type { CallLeg, LegName } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx } from '../database.ts';
import { emitCallNews } from './call-news.ts';
import {
  appendEvents,
  type CallEventRow,
  type CallMove,
  type CallRow,
  isFinalState,
  type RecordingStatus,
} from './call-row.ts';

/** What may change while a call runs. Only the fields present are written. */
export interface LivePatch {
  leg?: LegName | null;
  answerTime?: Date | null;
  announced?: boolean;
  whispered?: boolean;
  recordingId?: string | null;
  recordingStatus?: RecordingStatus | null;
  legs?: readonly CallLeg[];
  error?: string | null;
  errorDetail?: string | null;
}

/**
 * Stores moves of a live call in one transaction: the event rows, the state after the last of them, and the patch.
 * Returns the stored events and the webhook deliveries to enqueue, or false when the call is final (or gone) and nothing was
 * changed. A final state is for
 * `settleCall` alone.
 */
export async function recordMoves(
  sql: SqlOrTx,
  callId: string,
  moves: readonly CallMove[],
  patch: LivePatch = {},
): Promise<{ call: CallRow; events: CallEventRow[]; webhookDeliveries: string[] } | false> {
  const final = moves.find((move) => isFinalState(move.state));
  if (final) throw new RangeError(`recordMoves cannot make a call ${final.state}: settleCall does`);
  return await inTransaction(sql, async (tx) => {
    const call = await lockLiveCall(tx, callId);
    if (!call) return false;
    const events = await appendEvents(tx, { callId, lastSequence: call.seq, moves });
    const changes = { ...definedOnly(patch), state: moves.at(-1)?.state ?? call.state, seq: call.seq + moves.length };
    const row = { ...changes, ...(changes.legs && { legs: tx.json(changes.legs as never) }) };
    const [updated] = await tx<CallRow[]>`update calls set ${tx(row as never)} where call_id = ${callId} returning *`;
    return { call: updated!, events, webhookDeliveries: await emitCallNews(tx, call, events) };
  });
}

/**
 * The call, locked until the transaction ends; null when it is final or there is none, or when another boot owns it: a boot
 * that lost its lease must not write.
 */
export async function lockLiveCall(
  tx: SqlOrTx,
  callId: string,
  { ownerBoot }: { ownerBoot?: string } = {},
): Promise<CallRow | null> {
  const [call] = await tx<CallRow[]>`select * from calls where call_id = ${callId} for no key update`;
  if (call === undefined || isFinalState(call.state)) return null;
  return ownerBoot === undefined || call.ownerBoot === ownerBoot ? call : null;
}

function definedOnly<T extends object>(patch: T): Partial<T> {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) as Partial<T>;
}
