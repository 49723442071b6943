import type { CallControl, ControlRefusal, Talk, TalkControl } from './call-control.ts';
import type {
  CallQuality,
  CallSegment,
  GuestRole,
  HangupCause,
  LegId,
  LegName,
  MediaEvent,
  RemoteMedia,
  SupervisionMode,
} from './events.ts';
import type { KeyPresses } from './key-presses.ts';
import type { LegReport } from './leg.machine.ts';

/** What goes into a call's machine, what it is told, what it says, and what it remembers: plain data only. */

export interface CallInput {
  callId: string;
  agentRingTimeoutMs: number;
  customerRingTimeoutMs: number;
  maxDurationMs: number;
  record: boolean;
  transcribe: boolean;
  /** Whether the agent is told something on answering, before the customer is dialed. */
  announce: boolean;
  /** Whether the agent alone is told something when the talk begins. */
  whisper: boolean;
  /** What to do when a machine answers the customer's number. Null: machine detection is off. */
  onMachine: OnMachine | null;
  /** Talk that the hold taken at admission pays for. */
  fundedForMs: number;
}

/** `hangup` ends the call when a machine or a fax machine has answered. */
export type OnMachine = 'continue' | 'hangup';

export interface CallContext extends CallInput {
  local: LocalMedia | null;
  legs: Record<LegName, 'none' | 'up' | 'gone'>;
  rang: Record<LegName, boolean>;
  earlyMedia: boolean;
  bridged: boolean;
  fundingFailures: number;
  settleFailures: number;
  isTranscribing: boolean;
  isRecording: boolean;
  talk: Talk;
  /** The legs that were added to the talk and are not gone. */
  guests: Readonly<Record<LegId, Guest>>;
  /** Received key presses that were told; there is a limit. */
  digitsReceived: number;
  keyPresses: KeyPresses;
  /** The sounds that controls play and that are not over. */
  playbacks: readonly string[];
  outcome: CallOutcome | null;
  report: MediaReport | null;
}

/** A leg that was added. */
export interface Guest {
  role: GuestRole;
  /** Null unless it is a supervisor; while it talks, the talk has its present mode. */
  mode: SupervisionMode | null;
  /** `opening` until it has a media port. */
  state: 'opening' | 'dialing' | 'ringing' | 'talking';
  /** The request that added it. */
  controlId: string;
  /** Requests to hang it up, which are answered when it is gone. */
  drops: readonly string[];
}

export type CallEvent =
  | LegReport
  | MediaEvent<LegId>
  | GuestMediaReport
  /** The machine's own: more or fewer legs are to be paid for than before. */
  | { type: 'legs.changed' }
  /** The machine's own: the target of a transfer takes its place now. */
  | { type: 'transfer.due' }
  | { type: 'media.opened'; local: LocalMedia }
  | { type: 'media.unavailable'; detail: string }
  | { type: 'media.finished'; report: MediaReport }
  | { type: 'recording.started'; recordingId: string }
  | TranscriptReport
  | SpeechReport
  /** The machine's own: the whisper has not begun. */
  | { type: 'whisper.overdue' }
  | { type: 'hangup.requested'; reason: 'api' | 'shutdown' | 'caller' }
  | { type: 'control.requested'; controlId: string; control: CallControl }
  | ControlReport;

/** What the media port tells of a control. */
export type ControlReport =
  /** A sound that a control played is over, for all its legs, and not because a control stopped it. */
  | { type: 'playback.ended'; playbackId: string; end: 'played' | 'stopped' }
  | { type: 'control.done'; controlId: string; control: TalkControl }
  | { type: 'control.failed'; controlId: string; control: TalkControl; refusal: ControlRefusal };

/** What the media port tells of a leg that is added. */
export type GuestMediaReport =
  | { type: 'guest.opened'; legId: LegId; local: { host: string; rtpPort: number } }
  | { type: 'guest.unavailable'; legId: LegId; refusal: ControlRefusal }
  /** It answered, and is now connected. */
  | { type: 'guest.connected'; legId: LegId }
  /** It answered, with an address that nothing can be sent to. */
  | { type: 'guest.unconnected'; legId: LegId };

export type MediaCommand =
  | { type: 'connect'; leg: LegId; media: RemoteMedia }
  /** Takes a port for a leg that is added, and tells by a `GuestMediaReport`. */
  | { type: 'add-party'; leg: LegId }
  | { type: 'remove-party'; leg: LegId }
  /** Connects the parties as the talk has it now. */
  | { type: 'route'; talk: Talk }
  | { type: 'path'; path: 'idle' | 'ringback' | 'early-media' | 'bridged' }
  | { type: 'record' }
  /** Detect who or what has answered the customer's number, and report `machine.detected`. */
  | { type: 'detect-machine' }
  /** To the agent: a whisper over the customer, an announcement alone. A path that is set ends it. */
  | { type: 'say'; speech: SpeechName }
  /** Ends the announcement or the whisper. */
  | { type: 'stop-saying' }
  /** Do it, and tell by a `ControlReport`. `talk` is how the parties are connected then. */
  | { type: 'control'; controlId: string; control: TalkControl; talk: Talk }
  /** Close the recording, measure, close the session, answer `media.finished`. */
  | { type: 'finish' };

/** What the platform says to the agent; also what its events are called by. */
export type SpeechName = 'announcement' | 'whisper';

/** What becomes of it. One that was ended by something else is told no further. */
export type SpeechReport =
  | { type: 'speech.started'; speech: SpeechName }
  | { type: 'speech.finished'; speech: SpeechName }
  | { type: 'speech.failed'; speech: SpeechName; detail: string };

/** What the transcript tells of itself. Nothing follows `transcript.failed` or `transcript.ended`. */
export type TranscriptReport =
  | { type: 'transcript.started' }
  | { type: 'transcript.final'; segment: CallSegment }
  /** A third party is no longer transcribed. `reason` is a code. */
  | { type: 'transcript.leg_failed'; leg: LegId; reason: string }
  /** `reason` is a code. */
  | { type: 'transcript.failed'; reason: string }
  | { type: 'transcript.ended' };

export type TranscriptCommand =
  /** The talk is over: tell what was said at last, then `transcript.ended`. */
  | { type: 'finish' }
  /** A third party takes part in the talk from now on, or no longer. */
  | { type: 'join'; leg: LegId }
  | { type: 'leave'; leg: LegId }
  /** The tap of a leg has ended early. */
  | { type: 'overrun'; leg: LegId };

export type LocalMedia = Record<LegName, { host: string; rtpPort: number }>;

/** What is known of the media once it is closed. */
export interface MediaReport {
  quality: CallQuality | null;
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
  /** What was said, with `transcript.final`. */
  segment: CallSegment | null;
  /** What else there is to tell, such as the digit of `dtmf.received`. */
  data: Readonly<Record<string, unknown>> | null;
}

export type CallEmitted =
  | { type: 'moved'; move: CallMove }
  /** The talk, if there was one, ends here: what follows is clearing up. */
  | { type: 'clearing' }
  /** What became of a control; the move of one that happened was emitted before. */
  | { type: 'controlled'; controlId: string; refusal: ControlRefusal | null };

/** How a call ended, decided once, when it starts to be cleared. */
export interface CallOutcome {
  /** `completed` needs a bridge; `rejected` means nothing was ever dialed. */
  state: 'completed' | 'failed' | 'rejected';
  terminalEvent: 'call.completed' | 'call.not_answered' | 'call.failed' | 'call.temporaryfailed';
  hangupCause: HangupCause;
  /** The leg that failed, or that ended a completed call; null when neither did. */
  leg: LegName | null;
  sipStatus: number | null;
  /** A machine code such as `customer_busy`; null for a completed call. */
  error: string | null;
  errorDetail: string | null;
}
