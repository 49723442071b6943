import type { Call, CallEvent, CallSummary } from '../call/call-data.ts';

/** Data of `GET /dialer/stream`: calls, and the current levels and quality of their legs. */

interface Running {
  /** Sequence of the call's latest event. */
  sequence: number;
  price_per_minute_usd: number;
  cost_so_far_usd: number;
}

export type LiveCall = CallSummary & Running;

export interface LegLevel {
  leg: string;
  /** -96 for silence to 0. */
  level_dbov: number;
  speaking: boolean;
}

export interface LegQuality {
  leg: string;
  codec: string;
  packets_received: number;
  packets_lost: number;
  jitter_ms: number;
  mos: number | null;
}

export interface Spoken {
  call_id: string;
  leg: string;
  role: Call['legs'][number]['role'];
  /** False while the leg is speaking: its next segment replaces this one. */
  is_final: boolean;
  text: string;
  /** Seconds since the bridge. Null until it is final, if the engine reports no times. */
  start: number | null;
  end: number | null;
}

/** An event of the stream, by its name. */
export type LiveNews =
  | { type: 'snapshot'; data: { calls: (Call & Running)[]; truncated: boolean } }
  | { type: 'call'; data: { call: LiveCall; events: CallEvent[] } }
  | { type: 'level'; data: { call_id: string; legs: LegLevel[] } }
  | { type: 'quality'; data: { call_id: string; legs: LegQuality[] } }
  | { type: 'transcript'; data: Spoken };

export const NEWS_TYPES: readonly LiveNews['type'][] = ['snapshot', 'call', 'level', 'quality', 'transcript'];
