import type { CallLeg, CallQuality, CallSegment, LegName } from '../../machines/events.ts';
import type { SqlOrTx } from '../database.ts';

export type CallState = 'pending' | 'initiated' | 'bridged' | 'completed' | 'failed' | 'rejected' | 'unknown';
export type TerminalEvent = 'call.completed' | 'call.not_answered' | 'call.failed' | 'call.temporaryfailed';
export type RecordingStatus = 'recording' | 'processing' | 'uploaded' | 'failed' | 'deleted';

/** `unknown` is live: a call whose node was lost still has to be resolved. */
const LIVE_STATES: readonly CallState[] = ['pending', 'initiated', 'bridged', 'unknown'];

export function isFinalState(state: CallState): boolean {
  return !LIVE_STATES.includes(state);
}

/** A row of `calls`. Money in nano-USD, times as Date. */
export interface CallRow {
  callId: string;
  workspaceId: string;
  referenceId: string;
  trunkId: string;
  did: string;
  /** Null when the agent is a browser. */
  agentNumber: string | null;
  /** The user whose browser is the agent; null when the agent is a phone. */
  agentUserId: number | null;
  /** Null: the caller of an inbound call withheld it. */
  customerNumber: string | null;
  state: CallState;
  /** Sequence of the latest event. */
  seq: number;
  terminalEvent: TerminalEvent | null;
  hangupCause: string | null;
  leg: LegName | null;
  error: string | null;
  errorDetail: string | null;
  startTime: Date | null;
  answerTime: Date | null;
  endTime: Date | null;
  talkSeconds: number | null;
  totalSeconds: number | null;
  /** Exactly what the client sent. */
  metadata: Record<string, unknown> | null;
  recordRequested: boolean;
  /** Whether both parties hear a tone when the recording starts. */
  recordingBeep: boolean;
  recordingId: string | null;
  recordingStatus: RecordingStatus | null;
  transcribeRequested: boolean;
  /** What to do when a machine answers the customer's number. Null: machine detection is off. */
  onMachine: 'continue' | 'hangup' | null;
  quality: CallQuality | null;
  /** In the order in which they were dialed; none for a call of an earlier version. */
  legs: readonly CallLeg[];
  callbackUrl: string | null;
  /** Sealed by `createSecretBox`. */
  callbackSecretEncrypted: Buffer | null;
  callbackSecretLast4: string | null;
  agentRingTimeoutS: number;
  customerRingTimeoutS: number;
  maxDurationS: number;
  /** The trunk's price when the call was admitted. */
  pricePerMinuteNano: bigint;
  /** What the agent is to be told on answering, and as the talk begins; null: nothing. */
  announceCharacters: number | null;
  whisperCharacters: number | null;
  /** The workspace's price when the call was admitted. */
  characterPriceNano: bigint;
  /** Whether the agent has heard it begin. */
  announced: boolean;
  whispered: boolean;
  holdId: string | null;
  /** What was charged for the talk; null before the end and when nothing was owed. */
  costNano: bigint | null;
  /** Seconds that the legs which were added have talked together; null before the end. */
  legSeconds: number | null;
  /** What was charged for them; null likewise. */
  legsCostNano: bigint | null;
  /** For what the agent was told; null likewise. */
  speechCostNano: bigint | null;
  billingStatus: 'billed' | 'failed' | null;
  placedVia: 'api_key' | 'session' | 'inbound';
  direction: 'outbound' | 'inbound';
  apiKeyId: number | null;
  apiKeyName: string | null;
  createdByUserId: number | null;
  ownerNode: string;
  ownerBoot: string;
  /** Once the call was taken over: the last time at which the owner that was lost is known to have lived. */
  ownerSeenAt: Date | null;
  /** Digest of the request that placed the call. Null: not placed by a request, or by an earlier version. */
  requestHash?: Buffer | null;
  createdAt: Date;
}

/** One move of a call's machine, before it is stored. */
export interface CallMove {
  event: string;
  /** The call's state after the move. */
  state: CallState;
  leg: LegName | null;
  sipStatus: number | null;
  hangupCause: string | null;
  at: Date;
  detail: string | null;
  /** What was said, where the event tells that; it is stored with the transcript. */
  segment?: EventSegment | null;
  /** What else there is to tell, such as a digit. */
  data?: Readonly<Record<string, unknown>> | null;
}

export type EventSegment = Pick<CallSegment, 'text' | 'startMs' | 'endMs' | 'confidence'>;

/** A stored move: `sequence` counts from 1 within the call, `eventId` is unique everywhere. */
export interface CallEventRow extends CallMove {
  callId: string;
  sequence: number;
  eventId: string;
}

export interface CallEventDelivery {
  status: 'pending' | 'delivered' | 'failed';
  attempts: number;
  lastHttpStatus: number | null;
  nextAttemptAt: Date | null;
}

export interface CallEventWithDelivery extends CallEventRow {
  delivery: CallEventDelivery | null;
}

/** Appends moves to the event log with the sequences after `lastSequence`, in the caller's transaction. */
export async function appendEvents(
  tx: SqlOrTx,
  { callId, lastSequence, moves }: { callId: string; lastSequence: number; moves: readonly CallMove[] },
): Promise<CallEventRow[]> {
  if (moves.length === 0) return [];
  const rows = moves.map((move, index) => ({
    callId,
    sequence: lastSequence + 1 + index,
    event: move.event,
    state: move.state,
    leg: move.leg,
    sipStatus: move.sipStatus,
    hangupCause: move.hangupCause,
    detail: move.detail,
    at: move.at,
    data: move.data ? tx.json(move.data as never) : null,
  }));
  const events = await tx<CallEventRow[]>`insert into call_events ${tx(rows)} returning *`;
  return events.map((event, index) => ({ ...event, segment: moves[index]?.segment ?? null }));
}
