import type { Codec, HangupCause, LegEvent, MediaEncryption } from '../machines/events.ts';

/** SIP as the actors see it. Implemented in `sip-gateway.drachtio.ts`. */
export interface SipGateway {
  /** `connected` once the SIP server has authenticated us; placement is refused while `disconnected`. */
  readonly state: 'connected' | 'disconnected';
  onStateChange(listener: (state: 'connected' | 'disconnected') => void): () => void;
  /** Sends the INVITE of one leg. Never throws: every outcome, also an immediate one, is a `LegEvent`. */
  dial(request: DialRequest): LegDialog;
  /** Takes the calls of peers from now on. Without, they are refused with 480. */
  onCall(listener: (call: InboundCall) => void): void;
  /** One OPTIONS to the trunk (RFC 3261 §11). Any answer, an error status included, means reachable. */
  probe(trunk: TrunkEndpoint, signal: AbortSignal): Promise<TrunkProbe>;
  /** Makes a registration of the trunk's account at our address. Nothing is sent until `register`. */
  openRegistration(trunk: TrunkEndpoint): TrunkRegistration;
  /** Ends legs that a process before this one left behind, once there is a connection. */
  endLegs(handles: readonly LegHandle[]): void;
  dump(): unknown;
  close(): Promise<void>;
}

/** The binding of one account (RFC 3261 §10): its REGISTERs share Call-ID, sequence and nonces. */
export interface TrunkRegistration {
  /** One REGISTER at a time, repeated as its challenges and a 423 demand. Never throws. */
  register(request: RegisterRequest): Promise<RegisterOutcome>;
}

export interface RegisterRequest {
  /** Asked for; the registrar decides. 0 removes the binding. */
  expiresS: number;
  /** Where to send it instead of resolving the host of the trunk. Default: null. */
  nextHop?: NextHop | null;
  signal: AbortSignal;
}

export type RegisterOutcome =
  /** For how long from now on. */
  | { type: 'registered'; expiresS: number }
  | { type: 'refused'; sipStatus: number; reason: string; retryAfterS: number | null }
  | { type: 'unanswered'; reason: TrunkSilence };

export type SipTransport = 'udp' | 'tcp' | 'tls';

/** An address to send requests to instead of resolving the host of their URI. */
export interface NextHop {
  /** IPv4 or IPv6. */
  address: string;
  /** Null: that of the URI, else the default of the transport. */
  port: number | null;
  transport: SipTransport;
}

export interface TrunkEndpoint {
  /** e.g. `sip:carrier.example:5060`: the user part of requests is the called number. */
  sipUri: string;
  /** A `sips:` URI means TLS, whatever this says. */
  transport: SipTransport;
  /** Where to send requests instead of resolving the host of `sipUri`. Default: null. */
  nextHop?: Pick<NextHop, 'address' | 'port'> | null;
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
  /** The dialog at the peer that the leg takes over, as a Replaces header (RFC 3891). Default: none. */
  replaces?: string | null;
  /** Goes into the SDP offer. */
  localMedia: { host: string; rtpPort: number };
  /** Sent as X-Tandem-Call-Id so that both sides can match their logs. */
  callId: string;
  /** `agent`, `customer` or the id of a further leg. */
  leg: string;
  /**
   * Aborting gives the leg up: CANCEL or BYE is sent, and the leg's last event comes at once instead of with the
   * peer's answer. The owner aborts when its own deadline for the end of the leg has passed; a leg keeps no clock.
   */
  signal: AbortSignal;
  onEvent: (event: LegEvent) => void;
  /** What the INVITE showed of the trunk. Also called after the leg's last event. */
  onSign?: (sign: TrunkSign) => void;
  /**
   * Called when the peer of an answered leg sends REFER. Resolves with the status of the response; after 202, `referral.report`
   * reports the outcome. Default: respond 603.
   */
  onReferral?: (referral: Referral) => Promise<number>;
  /** Ends the leg after this process. Called when it is answered and, with a SIP server that outlives us, when it is dialed. */
  onHandle?: (handle: LegHandle) => void;
}

/** A transfer that a peer requests with REFER (RFC 3515). */
export interface Referral {
  /** User part of Refer-To, or the number of a `tel:` URI, as the peer wrote it. */
  readonly user: string;
  /** The dialog at the target that the call takes over (RFC 3891): an attended transfer. Null for a blind one. */
  readonly replaces: string | null;
  /** Reports the final SIP status of the attempt to the peer. Only the first call counts; ignored once the leg has ended. */
  report(status: number): void;
}

/**
 * What a request shows of its trunk: any response of the peer, a refusal too, is an answer. `no_response`: the
 * transaction timed out. `transport_error`: the next hop cannot be resolved or reached. `busy`: it answered 503 with
 * Retry-After, and wants no requests until then (RFC 3261 §21.5.4).
 */
export type TrunkSign =
  | { type: 'answered' }
  | { type: 'unanswered'; reason: TrunkSilence }
  | { type: 'busy'; retryAfterS: number };
export type TrunkSilence = 'no_response' | 'transport_error';

/** A call that a peer wants to make. It waits until it is answered or refused. */
export interface InboundCall {
  /** User part of the request URI, as the peer wrote it. */
  readonly called: string;
  /**
   * User part of P-Asserted-Identity (RFC 3325), or else of From. Empty if there is none, or the caller asked not to show
   * it (RFC 3323).
   */
  readonly caller: string;
  /** Where the INVITE came from. */
  readonly source: { host: string; port: number };
  /** The header of that name. */
  readonly authorization: string | undefined;
  /** Aborted when the peer gives up before it is answered or refused. */
  readonly abandoned: AbortSignal;
  /** 180. */
  ring(): void;
  /** Puts its SIP messages, earlier and later ones, into the trace of a leg. */
  traceAs(leg: { callId: string; leg: string }): void;
  /** Asks for a password with 401 and this WWW-Authenticate; the answer comes as another call. */
  challenge(challenge: string): void;
  /** Idempotent; nothing happens to a call that is answered. */
  refuse(cause: HangupCause): void;
  /** Makes a leg of it, which is `leg.answered` once the peer has acknowledged. Call it once. */
  answer(request: Omit<DialRequest, 'callerId' | 'calledNumber'>): LegDialog;
}

/**
 * Ends a leg from another connection, or from another process, than the one that made it. Plain JSON, so that it can be
 * stored.
 */
export type LegHandle = InviteHandle | DialogHandle;

/** An INVITE without a final response, known to the SIP server by its transaction. */
export interface InviteHandle {
  kind: 'invite';
  transactionId: string;
}

/** An answered leg: as the SIP server knows it, and as the peer does (RFC 3261 §12). */
export interface DialogHandle {
  kind: 'dialog';
  dialogId: string;
  callId: string;
  /** Values of From and To of our requests, with their tags. */
  local: string;
  remote: string;
  /** Request URI; null for a peer without Contact, which only the SIP server that had the dialog can reach. */
  target: string | null;
  /** Route headers, nearest first. */
  routes: readonly string[];
  /** CSeq of the last request of ours that is known. */
  sequence: number;
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
  /** Null when the trunk answered. */
  silence: TrunkSilence | null;
  sipStatus: number | null;
  roundTripMs: number;
}
