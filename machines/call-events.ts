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

/** Input, events, emitted events and context of the call machine. Serialisable data only. */

export interface CallInput {
  callId: string;
  agentRingTimeoutMs: number;
  customerRingTimeoutMs: number;
  maxDurationMs: number;
  record: boolean;
  transcribe: boolean;
  /** Play a text to the agent on answer, before the customer is dialed. */
  announce: boolean;
  /** Play a text to the agent alone when the talk begins. */
  whisper: boolean;
  /** Action when a machine answers the customer's number. Null: machine detection is off. */
  onMachine: OnMachine | null;
  /** Talk time that the wallet hold from admission covers. */
  fundedForMs: number;
}

/** `hangup` ends the call when an answering machine or a fax machine answers. */
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
  /** Legs of holds that the media is carrying out, by control. A hold that a transfer ends first is not logged. */
  pendingHolds: Readonly<Record<string, LegId>>;
  /** Added legs that have not ended. */
  guests: Readonly<Record<LegId, Guest>>;
  /** Reported key presses so far; their number is limited. */
  digitsReceived: number;
  keyPresses: KeyPresses;
  /** Ids of running playbacks that a control started. */
  playbacks: readonly string[];
  outcome: CallOutcome | null;
  report: MediaReport | null;
}

export interface Guest {
  role: GuestRole;
  /** Mode at the request; null unless it is a supervisor. While the leg talks, `talk` has the current mode. */
  mode: SupervisionMode | null;
  /** `opening` until a media port is allocated. */
  state: 'opening' | 'dialing' | 'ringing' | 'talking';
  /** Its audio can be sent to it. */
  isConnected: boolean;
  controlId: string;
  /** Hung up here, but not gone yet. */
  isLeaving: boolean;
  /** Controls that hang up the leg. Each is answered once the leg is gone. */
  drops: readonly string[];
}

export type CallEvent =
  | LegReport
  | MediaEvent<LegId>
  | GuestMediaReport
  /** Raised by the machine: the number of billed legs changed. */
  | { type: 'legs.changed' }
  /** Raised by the machine: the target of a transfer takes its place now. */
  | { type: 'transfer.due' }
  | { type: 'media.opened'; local: LocalMedia }
  | { type: 'media.unavailable'; detail: string }
  | { type: 'media.finished'; report: MediaReport }
  | { type: 'recording.started'; recordingId: string }
  | TranscriptReport
  | SpeechReport
  /** Raised by the machine: the whisper did not start in time. */
  | { type: 'whisper.overdue' }
  | { type: 'hangup.requested'; reason: 'api' | 'shutdown' | 'caller' }
  | { type: 'control.requested'; controlId: string; control: CallControl }
  | ControlReport;

export type ControlReport =
  /** A playback of a control ended for all its legs, other than by `play.stop`. */
  | { type: 'playback.ended'; playbackId: string; end: 'played' | 'stopped' }
  | { type: 'control.done'; controlId: string; control: TalkControl }
  | { type: 'control.failed'; controlId: string; control: TalkControl; refusal: ControlRefusal };

export type GuestMediaReport =
  | { type: 'guest.opened'; legId: LegId; local: { host: string; rtpPort: number } }
  | { type: 'guest.unavailable'; legId: LegId; refusal: ControlRefusal }
  | { type: 'guest.connected'; legId: LegId }
  /** The leg answered with a media address that we cannot send to. */
  | { type: 'guest.unconnected'; legId: LegId };

export type MediaCommand =
  | { type: 'connect'; leg: LegId; media: RemoteMedia }
  /** Allocates a port for an added leg. Answered by a `GuestMediaReport`. */
  | { type: 'add-party'; leg: LegId }
  | { type: 'remove-party'; leg: LegId }
  /** Routes audio between the parties as `talk` describes. */
  | { type: 'route'; talk: Talk }
  | { type: 'path'; path: 'idle' | 'ringback' | 'early-media' | 'bridged' }
  | { type: 'record' }
  /** Starts machine detection on the customer's leg, which reports `machine.detected`. */
  | { type: 'detect-machine' }
  /**
   * Plays speech to the agent: a whisper over the customer's audio, an announcement alone. A `path` command stops it.
   */
  | { type: 'say'; speech: SpeechName }
  | { type: 'stop-saying' }
  /** Ends the sound that a control plays to the leg. */
  | { type: 'end-playback'; leg: LegId }
  /** Executes the control. Answered by a `ControlReport`. `talk` is the state after it. */
  | { type: 'control'; controlId: string; control: TalkControl; talk: Talk }
  /** Sends a key press of the leg to the parties that hear it. */
  | { type: 'press'; leg: LegId; digit: string; durationMs: number; talk: Talk }
  /** Closes the recording, takes the last measurements and closes the session. Answered by `media.finished`. */
  | { type: 'finish' };

/** A text spoken to the agent. Event names contain it. */
export type SpeechName = 'announcement' | 'whisper';

/** Progress of an announcement or whisper. None follows if another command stopped it. */
export type SpeechReport =
  | { type: 'speech.started'; speech: SpeechName }
  | { type: 'speech.finished'; speech: SpeechName }
  | { type: 'speech.failed'; speech: SpeechName; detail: string };

/** Events of the transcript. None follows `transcript.failed` or `transcript.ended`. */
export type TranscriptReport =
  | { type: 'transcript.started' }
  | { type: 'transcript.final'; segment: CallSegment }
  /** The transcription of a third party stopped. `reason` is a code. */
  | { type: 'transcript.leg_failed'; leg: LegId; reason: string }
  /** `reason` is a code. */
  | { type: 'transcript.failed'; reason: string }
  | { type: 'transcript.ended' };

export type TranscriptCommand =
  /** The talk is over: report the last utterances, then `transcript.ended`. */
  | { type: 'finish' }
  /** A third party joins or leaves the talk. */
  | { type: 'join'; leg: LegId }
  | { type: 'leave'; leg: LegId }
  | { type: 'overrun'; leg: LegId };

export type LocalMedia = Record<LegName, { host: string; rtpPort: number }>;

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
  /** Milliseconds of further talk, from now, that the hold covers. */
  fundedForMs: number;
}

/** One row of the call's event log, without its sequence number and time. */
export interface CallMove {
  event: string;
  state: 'initiated' | 'bridged';
  leg: LegName | null;
  sipStatus: number | null;
  hangupCause: HangupCause | null;
  detail: string | null;
  recordingId: string | null;
  /** The utterance of a `transcript.final`. */
  segment: CallSegment | null;
  /** Further fields, such as the digit of `dtmf.received`. */
  data: Readonly<Record<string, unknown>> | null;
}

export type CallEmitted =
  | { type: 'moved'; move: CallMove }
  /** The talk, if any, is over. Only cleanup follows. */
  | { type: 'clearing' }
  /** Result of a control. If it succeeded, its move was emitted before. */
  | { type: 'controlled'; controlId: string; refusal: ControlRefusal | null };

/** How a call ended. Decided once, when clearing starts. */
export interface CallOutcome {
  /** `completed`: the call was bridged. `rejected`: no leg was dialed. */
  state: 'completed' | 'failed' | 'rejected';
  terminalEvent: 'call.completed' | 'call.not_answered' | 'call.failed' | 'call.temporaryfailed';
  hangupCause: HangupCause;
  /** The leg that failed, or that ended a completed call; null if neither did. */
  leg: LegName | null;
  sipStatus: number | null;
  /** A stable code such as `customer_busy`; null for a completed call. */
  error: string | null;
  errorDetail: string | null;
}
