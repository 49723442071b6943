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
 * Placing and controlling calls, as `http/` sees it. Implemented in `dialer.actor.ts`; HTTP tests use a fake of this interface.
 * Requests arrive parsed: numbers are +E.164, defaults are filled in, metadata is within bounds.
 */
export interface Dialer {
  /**
   * Admits a call and dials the agent. Resolves once the call is `initiated` (its INVITE is on its way) or the
   * reference turns out to be bound to a live call already.
   * @throws TandemError with the placement codes of `machines/errors.ts`.
   */
  place(request: PlaceCallRequest): Promise<PlacedCall>;
  /**
   * Returns a URL of the integrator as it will be requested.
   * @param field of the request, named in the error
   * @throws TandemError INVALID_CALLBACK_URL, C2C_CALLBACK_UNREACHABLE
   */
  checkCallbackUrl(url: string, field: string): Promise<string>;
  /** Asks a live call to end; resolves with the call as it is then. A finished call is returned unchanged. */
  hangup(target: { workspaceId: string; callId: string }): Promise<PublicCall>;
  /**
   * Controls a live call. Resolves with the call once it has happened and is stored.
   * @throws TandemError CALL_NOT_FOUND, CALL_NOT_LIVE, LEG_NOT_FOUND, RECORDING_UNAVAILABLE
   */
  control(target: { workspaceId: string; callId: string }, control: CallControl): Promise<PublicCall>;
  /**
   * Dials one more leg: a phone over the trunk of a live call, or a browser. Resolves once it is being dialed; it joins the
   * talk when it answers.
   * @throws TandemError CALL_NOT_FOUND, CALL_NOT_LIVE, LEG_NOT_FOUND, TRANSFER_IN_PROGRESS, TOO_MANY_LEGS, no_free_channel, WEBRTC_NOT_AVAILABLE, MEMBER_NOT_FOUND
   */
  addLeg(target: { workspaceId: string; callId: string }, leg: NewLeg): Promise<PublicLeg>;
  /**
   * Plays a sound to legs of a live call, over what they hear. Resolves with its id when the first of them hears it.
   * @throws TandemError CALL_NOT_FOUND, CALL_NOT_LIVE, LEG_NOT_FOUND, LEG_NOT_LISTENING, and those of `CallSoundDesk.make`
   */
  play(target: { workspaceId: string; callId: string }, sound: RequestedSound): Promise<{ playbackId: string }>;
  /** Live events, each after it was committed, in order. The listener is dropped when the signal aborts. */
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): void;
  /** Looks again for the audio of a finished recorded call (`refresh=1`); true when something changed. */
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
  /** The user whose browser is the agent. Null or absent: `agentNumber` is set. */
  agentUserId?: number | null;
  /** +E.164. Null if the caller of an inbound call withheld it. */
  customerNumber: string | null;
  did: string | null;
  trunkId: string | null;
  /** As given, or null: then one is minted. */
  referenceId: string | null;
  callbackUrl: string | null;
  callbackSecret: string | null;
  agentRingTimeoutS: number;
  customerRingTimeoutS: number;
  maxDurationS: number;
  record: boolean;
  /** Whether both parties hear a tone when the recording starts. Null or absent: as the workspace is set. */
  recordingBeep?: boolean | null;
  transcribe: boolean;
  /** What to do when a machine answers the customer's number. Null or absent: machine detection is off. */
  onMachine?: 'continue' | 'hangup' | null;
  /** What the agent is told on answering, and as the talk begins; plain or SSML. Null: nothing. */
  announce: string | null;
  whisper: string | null;
  /** Null: the usual voice. */
  voiceId: string | null;
  metadata: Record<string, unknown> | null;
}

export interface RequestedSound {
  source: SoundSource;
  legs: readonly LegId[];
  /** Repeats it until it is stopped. */
  isLooped: boolean;
}

export interface NewLeg {
  role: GuestRole;
  /** Null unless it is a supervisor. */
  mode: SupervisionMode | null;
  endpoint: LegEndpoint;
  /** The dialog at the endpoint that the leg takes over, as a Replaces header (RFC 3891). Default: none. */
  replaces?: string | null;
  /** The leg whose place it takes. Absent: it joins the others. */
  transfer?: { leg: LegId; mode: TransferMode; requestedBy?: TransferRequester };
}

export interface PlacedCall {
  placed: boolean;
  replayed: boolean;
  call: PublicCall;
}
