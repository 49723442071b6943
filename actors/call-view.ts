import type { LegName, LegQuality } from '../machines/events.ts';

/** The call object of the API, field by field as in the specification (Call). Times are ISO 8601 with milliseconds. */
export interface PublicCall {
  call_id: string;
  reference_id: string;
  outbound_trunk_id: string;
  did: string;
  agent_number: string;
  customer_number: string;
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
  callback_url: string | null;
  callback_secret_last4: string | null;
  cost_usd: number | null;
  billing_status: 'billed' | 'failed' | null;
  placed_via: 'api_key' | 'session';
  api_key_id: number | null;
  api_key_name: string | null;
  created_by_user_id: number | null;
  created_at: string;
  /** Per leg, once measured (beyond the specification). */
  quality: Record<LegName, LegQuality | null> | null;
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
  delivery: {
    status: string;
    attempts: number;
    last_http_status: number | null;
    next_attempt_at: string | null;
  } | null;
}
