import {
  type CallLeg,
  isLegName,
  type LegId,
  type LegName,
  type LegQuality,
  type SupervisionMode,
} from '../machines/events.ts';
import { seconds } from '../machines/utterances.ts';
import { nanoToUsd } from '../runtime/money.ts';
import type { CallEventRow, CallEventWithDelivery, CallRow, EventSegment } from '../storage/queries/calls.ts';
import { isFinalState } from '../storage/queries/calls.ts';
import type { TranscriptRow, TranscriptSegmentRow } from '../storage/queries/transcripts.ts';

/** Call object of the API, field by field as in the specification (Call). Times are ISO 8601 with milliseconds. */
export interface PublicCall {
  call_id: string;
  reference_id: string;
  outbound_trunk_id: string;
  did: string;
  /** Null if the agent is a browser. */
  agent_number: string | null;
  customer_number: string | null;
  /** `inbound`: the customer called `did` (beyond the specification). */
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
  /** Whether `transcribe` was true (beyond the specification). */
  transcribe_requested: boolean;
  /** Whether `announce` and `whisper` were set (beyond the specification). */
  announce_requested: boolean;
  whisper_requested: boolean;
  callback_url: string | null;
  callback_secret_last4: string | null;
  cost_usd: number | null;
  /** Cost of added legs, in addition to `cost_usd` (beyond the specification). */
  legs_cost_usd: number | null;
  /** Cost of `announce` and `whisper`, in addition to `cost_usd` (beyond the specification). */
  speech_cost_usd: number | null;
  billing_status: 'billed' | 'failed' | null;
  placed_via: 'api_key' | 'session' | 'inbound';
  api_key_id: number | null;
  api_key_name: string | null;
  created_by_user_id: number | null;
  created_at: string;
  /** In dialing order (beyond the specification). */
  legs: PublicLeg[];
  /** Null until measured (beyond the specification). */
  quality: Record<LegName, LegQuality | null> | null;
}

export interface PublicLeg {
  /** `agent`, `customer`, or the id of an added leg. */
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
  /** Null before the end of the call. */
  quality: LegQuality | null;
}

export type CallState = 'pending' | 'initiated' | 'bridged' | 'completed' | 'failed' | 'rejected' | 'unknown';
export type TerminalEvent = 'call.completed' | 'call.not_answered' | 'call.failed' | 'call.temporaryfailed';

export interface PublicCallEvent {
  sequence: number;
  event: string;
  state: CallState;
  leg: LegName | null;
  sip_status: number | null;
  hangup_cause: string | null;
  at: string;
  detail: string | null;
  /** Further data, such as `{"digit": "5"}` (beyond the specification). */
  data: Readonly<Record<string, unknown>> | null;
  /** Text of a `transcript.final`, for readers with permission (beyond the specification). */
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
  /** 0 to 1. */
  confidence: number | null;
}

export interface PublicTranscript {
  call_id: string;
  /** `none`: not requested, or there has been no talk yet. */
  status: 'none' | 'in_progress' | 'completed' | 'failed';
  /** Error code; null unless the transcript failed. Earlier segments remain. */
  error: string | null;
  /** ISO 639-1 of the most spoken language; null without segments. */
  language: string | null;
  /** In speaking order. */
  segments: (PublicSpoken & {
    /** `agent`, `customer`, or the `leg_id` of an added leg. */
    leg: string;
    /** Current role of the leg: the target of a transfer takes that of the leg it replaces. */
    role: CallLeg['role'];
    language: string;
    words: { word: string; start: number; end: number; confidence: number | null }[];
  })[];
}

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

/**
 * Only admins may see who supervises; they find it in the audit log. An added leg has its own endpoint, also in the
 * role of the agent.
 */
function endpointOf({ agentNumber, agentUserId, customerNumber }: CallRow, leg: CallLeg): PublicLeg['endpoint'] {
  const isSupervisor = leg.role === 'supervisor';
  const isFirstAgent = leg.legId === 'agent';
  const userId = leg.userId ?? (isFirstAgent ? agentUserId : null);
  if (userId !== null) return { type: 'webrtc', user_id: isSupervisor ? null : userId };
  const own = isFirstAgent ? agentNumber : customerNumber;
  return { type: 'phone', number: isSupervisor ? null : (leg.number ?? own) };
}

/** Calls stored before legs could be encrypted lack `encryption`. */
function qualityOf(stored: LegQuality | null): LegQuality | null {
  return stored && { ...stored, encryption: stored.encryption ?? null };
}

/** Presents an event. Only a terminal event has a delivery. */
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

/** Presents a transcript. `stored` is null for a call without one. */
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

function usd(nano: bigint | null): number | null {
  return nano === null ? null : nanoToUsd(nano);
}

function isoTime(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}
