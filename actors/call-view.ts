import {
  type CallLeg,
  isLegName,
  type LegId,
  type LegName,
  type LegQuality,
  type SupervisionMode,
} from '../machines/events.ts';
import { seconds } from '../machines/utterances.ts';
import type { CallEventRow, CallEventWithDelivery, CallRow, EventSegment } from '../storage/queries/calls.ts';
import { isFinalState } from '../storage/queries/calls.ts';
import type { TranscriptRow, TranscriptSegmentRow } from '../storage/queries/transcripts.ts';

/** The call object of the API, field by field as in the specification (Call). Times are ISO 8601 with milliseconds. */
export interface PublicCall {
  call_id: string;
  reference_id: string;
  outbound_trunk_id: string;
  did: string;
  /** Null when the agent is a browser. */
  agent_number: string | null;
  customer_number: string | null;
  /** `inbound`: the customer has called `did` (beyond the specification). */
  direction: 'outbound' | 'inbound';
  state: CallState;
  call_done: boolean;
  terminal_event: TerminalEvent | null;
  hangup_cause: string | null;
  leg: LegName | null;
  error: string | null;
  error_detail: string | null;
  talk_seconds: number | null;
  total_seconds: number | null;
  start_time: string | null;
  answer_time: string | null;
  end_time: string | null;
  metadata: Record<string, unknown> | null;
  record_requested: boolean;
  recording_id: string | null;
  recording_status: string | null;
  recording_available: boolean;
  /** Whether it was placed with `transcribe: true` (beyond the specification). */
  transcribe_requested: boolean;
  /** Whether it was placed with `announce`, and with `whisper` (beyond the specification). */
  announce_requested: boolean;
  whisper_requested: boolean;
  callback_url: string | null;
  callback_secret_last4: string | null;
  cost_usd: number | null;
  /** What the legs cost that were added to the talk, beside `cost_usd` (beyond the specification). */
  legs_cost_usd: number | null;
  /** What `announce` and `whisper` cost, beside `cost_usd` (beyond the specification). */
  speech_cost_usd: number | null;
  billing_status: 'billed' | 'failed' | null;
  placed_via: 'api_key' | 'session' | 'inbound';
  api_key_id: number | null;
  api_key_name: string | null;
  created_by_user_id: number | null;
  created_at: string;
  /** In the order in which they were dialed (beyond the specification). */
  legs: PublicLeg[];
  /** Of agent and customer, once measured (beyond the specification). */
  quality: Record<LegName, LegQuality | null> | null;
}

/** One leg of a call. */
export interface PublicLeg {
  /** `agent`, `customer`, or the id of a leg that was added. */
  leg_id: string;
  role: CallLeg['role'];
  /** Number and user are null for a supervisor. */
  endpoint: { type: 'phone'; number: string | null } | { type: 'webrtc'; user_id: number | null };
  state: CallLeg['state'];
  muted: boolean;
  /** Null unless it is a supervisor. */
  mode: SupervisionMode | null;
  joined_at: string | null;
  left_at: string | null;
  hangup_cause: string | null;
  /** Once measured, at the end of the call. */
  quality: LegQuality | null;
}

export type CallState = 'pending' | 'initiated' | 'bridged' | 'completed' | 'failed' | 'rejected' | 'unknown';
export type TerminalEvent = 'call.completed' | 'call.not_answered' | 'call.failed' | 'call.temporaryfailed';

/** One row of a call's event log as the API shows it. */
export interface PublicCallEvent {
  sequence: number;
  event: string;
  state: CallState;
  leg: LegName | null;
  sip_status: number | null;
  hangup_cause: string | null;
  at: string;
  detail: string | null;
  /** What the event tells beyond the other fields, such as `{"digit": "5"}` (beyond the specification). */
  data: Readonly<Record<string, unknown>> | null;
  /** What was said, with a `transcript.final`, for whoever may read it (beyond the specification). */
  transcript: PublicSpoken | null;
  delivery: {
    status: string;
    attempts: number;
    last_http_status: number | null;
    next_attempt_at: string | null;
  } | null;
}

/** Times in seconds since the bridge. */
export interface PublicSpoken {
  text: string;
  start: number;
  end: number;
  /** 0 to 1; null where the engine has none. */
  confidence: number | null;
}

export interface PublicTranscript {
  call_id: string;
  /** `none`: it was not asked for, or nobody has talked so far. */
  status: 'none' | 'in_progress' | 'completed' | 'failed';
  /** A code; null unless it failed. What was understood before that stands. */
  error: string | null;
  /** ISO 639-1 of what was said most; null before anything was. */
  language: string | null;
  /** In the order in which they were said. */
  segments: (PublicSpoken & {
    /** `agent`, `customer`, or the `leg_id` of a leg that was added. */
    leg: string;
    /** That the leg has by now: the target of a transfer takes the one of the leg that it replaces. */
    role: CallLeg['role'];
    language: string;
    words: { word: string; start: number; end: number; confidence: number | null }[];
  })[];
}

/** The call as every endpoint and callback shows it. */
export function presentCall(row: CallRow): PublicCall {
  return {
    call_id: row.callId,
    reference_id: row.referenceId,
    outbound_trunk_id: row.trunkId,
    did: row.did,
    agent_number: row.agentNumber,
    customer_number: row.customerNumber,
    direction: row.direction,
    state: row.state,
    call_done: isFinalState(row.state),
    terminal_event: row.terminalEvent,
    hangup_cause: row.hangupCause,
    leg: row.leg,
    error: row.error,
    error_detail: row.errorDetail,
    talk_seconds: row.talkSeconds,
    total_seconds: row.totalSeconds,
    start_time: isoTime(row.startTime),
    answer_time: isoTime(row.answerTime),
    end_time: isoTime(row.endTime),
    metadata: row.metadata,
    record_requested: row.recordRequested,
    recording_id: row.recordingId,
    recording_status: row.recordingStatus,
    recording_available: row.recordingStatus === 'uploaded',
    transcribe_requested: row.transcribeRequested,
    announce_requested: row.announceCharacters !== null,
    whisper_requested: row.whisperCharacters !== null,
    callback_url: row.callbackUrl,
    callback_secret_last4: row.callbackSecretLast4,
    cost_usd: usd(row.costNano),
    legs_cost_usd: usd(row.legsCostNano),
    speech_cost_usd: usd(row.speechCostNano),
    billing_status: row.billingStatus,
    placed_via: row.placedVia,
    api_key_id: row.apiKeyId,
    api_key_name: row.apiKeyName,
    created_by_user_id: row.createdByUserId,
    created_at: row.createdAt.toISOString(),
    legs: row.legs.map((leg) => presentLeg(row, leg)),
    quality: row.quality && { agent: qualityOf(row.quality.agent), customer: qualityOf(row.quality.customer) },
  };
}

function presentLeg(row: CallRow, leg: CallLeg): PublicLeg {
  return {
    leg_id: leg.legId,
    role: leg.role,
    endpoint: endpointOf(row, leg),
    state: leg.state,
    muted: leg.muted,
    mode: leg.mode,
    joined_at: leg.joinedAt,
    left_at: leg.leftAt,
    hangup_cause: leg.hangupCause,
    quality: qualityOf(row.quality?.[leg.legId] ?? null),
  };
}

/** Who supervises is for admins, who find it in the audit log. */
function endpointOf({ agentNumber, agentUserId, customerNumber }: CallRow, leg: CallLeg): PublicLeg['endpoint'] {
  const isSupervisor = leg.role === 'supervisor';
  const userId = leg.userId ?? (leg.role === 'agent' ? agentUserId : null);
  if (userId !== null) return { type: 'webrtc', user_id: isSupervisor ? null : userId };
  const own = leg.role === 'agent' ? agentNumber : customerNumber;
  return { type: 'phone', number: isSupervisor ? null : (leg.number ?? own) };
}

/** Calls that ended before legs could be encrypted have no `encryption` in the database. */
function qualityOf(stored: LegQuality | null): LegQuality | null {
  return stored && { ...stored, encryption: stored.encryption ?? null };
}

/** An event as the API shows it; one that was just committed has no callback yet that could have been tried. */
export function presentCallEvent(row: CallEventRow | CallEventWithDelivery): PublicCallEvent {
  const delivery = 'delivery' in row ? row.delivery : null;
  return {
    sequence: row.sequence,
    event: row.event,
    state: row.state,
    leg: row.leg,
    sip_status: row.sipStatus,
    hangup_cause: row.hangupCause,
    at: row.at.toISOString(),
    detail: row.detail,
    data: row.data ?? null,
    transcript: row.segment ? presentSpoken(row.segment) : null,
    delivery: delivery && {
      status: delivery.status,
      attempts: delivery.attempts,
      last_http_status: delivery.lastHttpStatus,
      next_attempt_at: isoTime(delivery.nextAttemptAt),
    },
  };
}

/** `stored` is null for a call without a transcript. */
export function presentTranscript(
  { callId, legs }: Pick<CallRow, 'callId' | 'legs'>,
  stored: { transcript: TranscriptRow; segments: TranscriptSegmentRow[] } | null,
): PublicTranscript {
  const segments = stored?.segments ?? [];
  return {
    call_id: callId,
    status: stored?.transcript.status ?? 'none',
    error: stored?.transcript.error ?? null,
    language: mostSpoken(segments),
    segments: segments.map((segment) => ({
      leg: segment.leg,
      role: roleOf(segment.leg, legs),
      ...presentSpoken(segment),
      language: segment.language,
      words: segment.words.map(({ word, startMs, endMs, confidence }) => ({
        word,
        start: seconds(startMs),
        end: seconds(endMs),
        confidence,
      })),
    })),
  };
}

function roleOf(legId: LegId, legs: readonly CallLeg[]): CallLeg['role'] {
  return legs.find((leg) => leg.legId === legId)?.role ?? (isLegName(legId) ? legId : 'party');
}

function presentSpoken({ text, startMs, endMs, confidence }: EventSegment): PublicSpoken {
  return { text, start: seconds(startMs), end: seconds(endMs), confidence };
}

function mostSpoken(segments: readonly TranscriptSegmentRow[]): string | null {
  const spokenMs = new Map<string, number>();
  for (const { language, startMs, endMs } of segments) {
    spokenMs.set(language, (spokenMs.get(language) ?? 0) + endMs - startMs);
  }
  return [...spokenMs].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}

const NANO_PER_USD = 1e9;

function usd(nano: bigint | null): number | null {
  return nano === null ? null : Number(nano) / NANO_PER_USD;
}

function isoTime(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}
