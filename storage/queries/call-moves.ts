import type { CallLeg, LegName } from '../../machines/events.ts';
import type { SqlOrTx, Tx } from '../database.ts';
import { emitCallNews, newsSubscribers } from './call-news.ts';
import {
  appendEvents,
  type CallEventRow,
  type CallMove,
  type CallRow,
  isFinalState,
  type RecordingStatus,
} from './call-row.ts';
import { jsonb } from './json-columns.ts';

/** Changes of a live call. Only given fields are written. */
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

interface RecordedMoves {
  call: CallRow;
  events: CallEventRow[];
  /** Ids to enqueue after the commit. */
  webhookDeliveries: string[];
}

/** Stores moves of a locked live call: events, the last state and the patch. Only `settleCall` stores a final state. */
export async function recordMoves(
  tx: Tx,
  call: CallRow,
  moves: readonly CallMove[],
  patch: LivePatch = {},
): Promise<RecordedMoves> {
  const final = moves.find((move) => isFinalState(move.state));
  if (final) throw new RangeError(`recordMoves cannot make a call ${final.state}: settleCall does`);
  const { callId } = call;
  const changes = { ...definedOnly(patch), state: moves.at(-1)?.state ?? call.state, seq: call.seq + moves.length };
  const row = { ...changes, ...(changes.legs && { legs: jsonb(tx, changes.legs) }) };
  // Sent together.
  const [events, [updated], subscribers] = await Promise.all([
    appendEvents(tx, { callId, lastSequence: call.seq, moves }),
    tx<CallRow[]>`update calls set ${tx(row as never)} where call_id = ${callId} returning *`.execute(),
    newsSubscribers(tx, call, moves),
  ]);
  return { call: updated!, events, webhookDeliveries: await emitCallNews(tx, call, { events, subscribers }) };
}

/**
 * Locks a call until the transaction ends. Null if it is final, missing or owned by another boot, because a boot
 * without its lease must not write.
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
