import type { Codec, HangupCause, LegEvent, MediaEncryption } from '../machines/events.ts';

/** SIP as the actors see it. Implemented in `sip-gateway.drachtio.ts`. */
export interface SipGateway {
  /** `connected` once the SIP server has authenticated us; placement is refused while `disconnected`. */
  readonly state: 'connected' | 'disconnected';
  onStateChange(listener: (state: 'connected' | 'disconnected') => void): () => void;
  /** Sends the INVITE of one leg. Never throws: every outcome, also an immediate one, is a `LegEvent`. */
  dial(request: DialRequest): LegDialog;
  /** One OPTIONS to the trunk (RFC 3261 §11). Any answer, an error status included, means reachable. */
  probe(trunk: TrunkEndpoint, signal: AbortSignal): Promise<TrunkProbe>;
  dump(): unknown;
  close(): Promise<void>;
}

export interface TrunkEndpoint {
  /** e.g. `sip:carrier.example:5060`: the user part of requests is the called number. */
  sipUri: string;
  transport: 'udp' | 'tcp';
  username: string | null;
  password: string | null;
  /** Codecs to offer, in order. */
  codecs: readonly Codec[];
  /** Whether peers may send comfort noise instead of audio in pauses (RFC 3389). Default false. */
  hasComfortNoise?: boolean;
  mediaEncryption: MediaEncryption;
}

export interface DialRequest {
  trunk: TrunkEndpoint;
  /** +E.164, presented in From and P-Asserted-Identity (RFC 3325). */
  callerId: string;
  /** +E.164, the user part of the request URI. */
  calledNumber: string;
  /** Goes into the SDP offer. */
  localMedia: { host: string; rtpPort: number };
  /** Sent as X-Tandem-Call-Id so that both sides can match their logs. */
  callId: string;
  /**
   * Aborting gives the leg up: CANCEL or BYE is sent, and the leg's last event comes at once instead of with the
   * peer's answer. The owner aborts when its own deadline for the end of the leg has passed; a leg keeps no clock.
   */
  signal: AbortSignal;
  onEvent: (event: LegEvent) => void;
}

export interface LegDialog {
  /**
   * CANCEL before an answer, BYE after one; a 200 that crosses our CANCEL is ACKed and ended with BYE
   * (RFC 3261 §9.1). Idempotent; the leg's last `LegEvent` comes with the peer's answer.
   */
  hangup(cause: HangupCause): void;
  /**
   * Offers the peer of an answered leg `a=sendonly`, or `a=sendrecv` again (RFC 3264 §8.4). What it answers comes as
   * `leg.media`; a refusal that may pass, such as 491, as `leg.glare`, after which the owner calls `offerAgain`; another
   * refusal changes nothing.
   */
  hold(isHeld: boolean): void;
  offerAgain(): void;
}

export interface TrunkProbe {
  reachable: boolean;
  sipStatus: number | null;
  roundTripMs: number;
}
