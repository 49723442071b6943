import type { CallOutcome } from './call-outcome.ts';
import type { HangupCause, LegName, LegQuality, MediaEvent, RemoteMedia } from './events.ts';
import type { LegReport } from './leg.machine.ts';

/** What goes into a call's machine, what it is told, what it says, and what it remembers: plain data only. */

export interface CallInput {
  callId: string;
  agentRingTimeoutMs: number;
  customerRingTimeoutMs: number;
  maxDurationMs: number;
  record: boolean;
  /** Talk that the hold taken at admission pays for. */
  fundedForMs: number;
}

export interface CallContext extends CallInput {
  local: LocalMedia | null;
  legs: Record<LegName, 'none' | 'up' | 'gone'>;
  rang: Record<LegName, boolean>;
  earlyMedia: boolean;
  bridged: boolean;
  fundingFailures: number;
  settleFailures: number;
  outcome: CallOutcome | null;
  report: MediaReport | null;
}

export type CallEvent =
  | LegReport
  | MediaEvent
  | { type: 'media.opened'; local: LocalMedia }
  | { type: 'media.unavailable'; detail: string }
  | { type: 'media.finished'; report: MediaReport }
  | { type: 'recording.started'; recordingId: string }
  | { type: 'hangup.requested'; reason: 'api' | 'shutdown' };

export type MediaCommand =
  | { type: 'connect'; leg: LegName; media: RemoteMedia }
  | { type: 'path'; path: 'idle' | 'ringback' | 'early-media' | 'bridged' }
  | { type: 'record' }
  /** Close the recording, measure, close the session, answer `media.finished`. */
  | { type: 'finish' };

export type LocalMedia = Record<LegName, { host: string; rtpPort: number }>;

/** What is known of the media once it is closed. */
export interface MediaReport {
  quality: Record<LegName, LegQuality | null> | null;
  recording: { recordingId: string; filePath: string; bytes: number; durationMs: number } | null;
}

export interface SettleInput {
  callId: string;
  outcome: CallOutcome;
  report: MediaReport | null;
}

export interface Funding {
  /** Milliseconds of further talk, from now, that the hold pays for. */
  fundedForMs: number;
}

/** One row of the call's event log, before it has a sequence number and a time. */
export interface CallMove {
  event: string;
  state: 'initiated' | 'bridged';
  leg: LegName | null;
  sipStatus: number | null;
  hangupCause: HangupCause | null;
  detail: string | null;
  recordingId: string | null;
}

export type CallEmitted =
  | { type: 'moved'; move: CallMove }
  /** The talk, if there was one, ends here: what follows is clearing up. */
  | { type: 'clearing' };
