import type { CallControl } from '../machines/call-control.ts';
import type {
  GuestRole,
  LegEndpoint,
  LegId,
  SupervisionMode,
  TransferMode,
  TransferRequester,
} from '../machines/events.ts';
import type { SoundSource } from './call-sound.ts';
import type { PublicCall, PublicCallEvent, PublicLeg } from './call-view.ts';

export type { CallControl, SoundSource };

/**
 * Places and controls calls for `http/`. Implemented in `dialer.actor.ts`; HTTP tests use a fake. Requests are already
 * parsed: numbers are +E.164, defaults are filled in, metadata is within bounds.
 */
export interface Dialer {
  /**
   * Admits a call and dials the agent. Resolves once the call is `initiated`, with its INVITE on the way, or with the
   * live call of a repeated reference.
   * @throws TandemError with the placement codes of `machines/errors.ts`
   */
  place(request: PlaceCallRequest): Promise<PlacedCall>;
  /**
   * Checks a URL of the integrator and returns it as it will be requested.
   * @param field of the request, named in the error
   * @throws TandemError INVALID_CALLBACK_URL, C2C_CALLBACK_UNREACHABLE
   */
  checkCallbackUrl(url: string, field: string): Promise<string>;
  /**
   * Checks the texts and the voice of a later call.
   * @throws TandemError INVALID_ANNOUNCE, INVALID_WHISPER, VOICE_NOT_FOUND, VOICE_NOT_READY
   */
  checkSpeech(speech: Pick<PlaceCallRequest, 'workspaceId' | 'announce' | 'whisper' | 'voiceId'>): Promise<void>;
  /** Hangs up a live call and resolves with its current state. Returns a finished call unchanged. */
  hangup(target: { workspaceId: string; callId: string }): Promise<PublicCall>;
  /**
   * Controls a live call. Resolves with the call once the control is carried out and stored.
   * @throws TandemError CALL_NOT_FOUND, CALL_NOT_LIVE, LEG_NOT_FOUND, RECORDING_UNAVAILABLE
   */
  control(target: { workspaceId: string; callId: string }, control: CallControl): Promise<PublicCall>;
  /**
   * Dials another leg: a phone over the live call's trunk, or a browser. Resolves once it is being dialed; it joins the
   * talk when it answers.
   * @throws TandemError CALL_NOT_FOUND, CALL_NOT_LIVE, LEG_NOT_FOUND, TRANSFER_IN_PROGRESS, TOO_MANY_LEGS,
   * no_free_channel, WEBRTC_NOT_AVAILABLE, MEMBER_NOT_FOUND
   */
  addLeg(target: { workspaceId: string; callId: string }, leg: NewLeg): Promise<PublicLeg>;
  /**
   * Plays a sound to legs of a live call, mixed with the talk. Resolves when the first leg hears it.
   * @throws TandemError CALL_NOT_FOUND, CALL_NOT_LIVE, LEG_NOT_FOUND, LEG_NOT_LISTENING, and those of
   * `CallSoundDesk.make`
   */
  play(target: { workspaceId: string; callId: string }, sound: RequestedSound): Promise<{ playbackId: string }>;
  /** Receives live events in order, after their commit, until the signal aborts. */
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): void;
  /** Searches again for the audio of a finished recorded call (`refresh=1`). True if something changed. */
  refreshRecording(callId: string): Promise<boolean>;
}

export interface PlaceCallRequest {
  workspaceId: string;
  placedVia: 'api_key' | 'session' | 'inbound';
  apiKeyId: number | null;
  apiKeyName: string | null;
  userId: number | null;
  /** +E.164. Null: `agentUserId` is set. */
  agentNumber: string | null;
  /** User whose browser is the agent. Null or absent: `agentNumber` is set. */
  agentUserId?: number | null;
  /** +E.164. Null if an inbound caller withheld it. */
  customerNumber: string | null;
  did: string | null;
  trunkId: string | null;
  /** Null: one is generated. */
  referenceId: string | null;
  callbackUrl: string | null;
  callbackSecret: string | null;
  agentRingTimeoutS: number;
  customerRingTimeoutS: number;
  maxDurationS: number;
  record: boolean;
  /** Plays a tone to both parties when recording starts. Null or absent: the workspace's setting applies. */
  recordingBeep?: boolean | null;
  transcribe: boolean;
  /** Action if a machine answers the customer's number. Null or absent: machine detection is off. */
  onMachine?: 'continue' | 'hangup' | null;
  /** Played to the agent on answering and as the talk begins; plain text or SSML. Null: nothing. */
  announce: string | null;
  whisper: string | null;
  /** Null: the default voice. */
  voiceId: string | null;
  metadata: Record<string, unknown> | null;
}

export interface RequestedSound {
  source: SoundSource;
  legs: readonly LegId[];
  /** Repeats until stopped. */
  isLooped: boolean;
}

export interface NewLeg {
  role: GuestRole;
  /** Null unless it is a supervisor. */
  mode: SupervisionMode | null;
  endpoint: LegEndpoint;
  /** Dialog that the leg replaces at the endpoint, as a Replaces header (RFC 3891). Default: none. */
  replaces?: string | null;
  /** Leg to replace. Absent: the new leg joins the others. */
  transfer?: { leg: LegId; mode: TransferMode; requestedBy?: TransferRequester };
}

export interface PlacedCall {
  placed: boolean;
  replayed: boolean;
  call: PublicCall;
}
