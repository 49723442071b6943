import type { CallLeg, CallQuality, CallSegment, LegName } from '../../machines/events.ts';
import type { SqlOrTx } from '../database.ts';
import { jsonb } from './json-columns.ts';

export type CallState = 'pending' | 'initiated' | 'bridged' | 'completed' | 'failed' | 'rejected' | 'unknown';
export type TerminalEvent = 'call.completed' | 'call.not_answered' | 'call.failed' | 'call.temporaryfailed';
export type RecordingStatus = 'recording' | 'processing' | 'uploaded' | 'failed' | 'deleted';

/** `unknown` is live: the call of a lost node, not resolved yet. */
const LIVE_STATES: readonly CallState[] = ['pending', 'initiated', 'bridged', 'unknown'];

export function isFinalState(state: CallState): boolean {
  return !LIVE_STATES.includes(state);
}

/** Condition on `calls`, written as in its partial indexes, so that Postgres uses them. */
export function callIsLive(sql: SqlOrTx) {
  return sql`calls.state in ('pending', 'initiated', 'bridged', 'unknown')`;
}

/** Condition on `calls`, written as in its partial indexes, so that Postgres uses them. */
export function callIsFinal(sql: SqlOrTx) {
  return sql`calls.state in ('completed', 'failed', 'rejected')`;
}

/** A row of `calls`. Money in nano-USD, times as Date. */
export interface CallRow {
  callId: string;
  workspaceId: string;
  referenceId: string;
  trunkId: string;
  did: string;
  /** Null if the agent is a browser. */
  agentNumber: string | null;
  /** User whose browser is the agent; null if the agent is a phone. */
  agentUserId: number | null;
  /** Null: an inbound caller withheld it. */
  customerNumber: string | null;
  state: CallState;
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
  /** Exactly as sent by the client. */
  metadata: Record<string, unknown> | null;
  recordRequested: boolean;
  recordingBeep: boolean;
  recordingId: string | null;
  recordingStatus: RecordingStatus | null;
  transcribeRequested: boolean;
  /** Action if a machine answers the customer's number. Null: machine detection is off. */
  onMachine: 'continue' | 'hangup' | null;
  quality: CallQuality | null;
  /** In dialing order; empty for calls of earlier versions. */
  legs: readonly CallLeg[];
  callbackUrl: string | null;
  /** Sealed by `createSecretBox`. */
  callbackSecretEncrypted: Buffer | null;
  callbackSecretLast4: string | null;
  agentRingTimeoutS: number;
  customerRingTimeoutS: number;
  maxDurationS: number;
  /** Trunk price at admission. */
  pricePerMinuteNano: bigint;
  /** Characters of announcement and whisper; null: none. */
  announceCharacters: number | null;
  whisperCharacters: number | null;
  /** Workspace price at admission. */
  characterPriceNano: bigint;
  /** Whether the agent has heard the start of it. */
  announced: boolean;
  whispered: boolean;
  holdId: string | null;
  /** Charge for the talk; null before the end and if nothing was owed. */
  costNano: bigint | null;
  /** Total talk time of added legs; null before the end. */
  legSeconds: number | null;
  /** Charge for added legs; null as above. */
  legsCostNano: bigint | null;
  /** Charge for announcement and whisper; null as above. */
  speechCostNano: bigint | null;
  billingStatus: 'billed' | 'failed' | null;
  placedVia: 'api_key' | 'session' | 'inbound';
  direction: 'outbound' | 'inbound';
  apiKeyId: number | null;
  apiKeyName: string | null;
  createdByUserId: number | null;
  ownerNode: string;
  ownerBoot: string;
  /** Last known sign of life of the lost owner, after a takeover. */
  ownerSeenAt: Date | null;
  /** Digest of the placement request. Null: not placed by a request, or by an earlier version. */
  requestHash?: Buffer | null;
  createdAt: Date;
}

export interface CallMove {
  event: string;
  state: CallState;
  leg: LegName | null;
  sipStatus: number | null;
  hangupCause: string | null;
  at: Date;
  detail: string | null;
  /** Transcript segment of the event; stored with the transcript. */
  segment?: EventSegment | null;
  /** Further data, such as a digit. */
  data?: Readonly<Record<string, unknown>> | null;
}

export type EventSegment = Pick<CallSegment, 'text' | 'startMs' | 'endMs' | 'confidence'>;

/** A stored move. `sequence` counts from 1 within the call; `eventId` is globally unique. */
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

/** Moves of a call, to be stored with the sequences after `lastSequence`. */
interface AppendedMoves {
  callId: string;
  lastSequence: number;
  moves: readonly CallMove[];
}

/** Appends moves to the event log, in the caller's transaction. */
export async function appendEvents(tx: SqlOrTx, appended: AppendedMoves): Promise<CallEventRow[]> {
  const { moves } = appended;
  if (moves.length === 0) return [];
  const events = await storeEvents(tx, [appended]);
  return events.map((event, index) => ({ ...event, segment: moves[index]?.segment ?? null }));
}

/** Appends moves of several calls to the event log, sent at once. Returns them without segments. */
export async function storeEvents(tx: SqlOrTx, appended: readonly AppendedMoves[]): Promise<CallEventRow[]> {
  const rows = appended.flatMap(({ callId, lastSequence, moves }) =>
    moves.map((move, index) => ({
      callId,
      sequence: lastSequence + 1 + index,
      event: move.event,
      state: move.state,
      leg: move.leg,
      sipStatus: move.sipStatus,
      hangupCause: move.hangupCause,
      detail: move.detail,
      at: move.at,
      data: jsonb(tx, move.data ?? null),
    })),
  );
  return await tx<CallEventRow[]>`insert into call_events ${tx(rows)} returning *`.execute();
}
