import type { Codec, HangupCause, LegEvent, MediaEncryption } from '../machines/events.ts';

/** The SIP port of the actors. Implemented in `sip-gateway.drachtio.ts`. */
export interface SipGateway {
  /** `connected` once the SIP server has authenticated us. While `disconnected`, calls are refused. */
  readonly state: 'connected' | 'disconnected';
  onStateChange(listener: (state: 'connected' | 'disconnected') => void): () => void;
  /** Sends the INVITE of one leg. Never throws: every outcome, even an immediate one, is a `LegEvent`. */
  dial(request: DialRequest): LegDialog;
  /** Sets the handler of inbound calls. Without one, they are rejected with 480. */
  onCall(listener: (call: InboundCall) => void): void;
  /** Sends one OPTIONS to the trunk (RFC 3261 §11). Any response, even an error status, means reachable. */
  probe(trunk: TrunkEndpoint, signal: AbortSignal): Promise<TrunkProbe>;
  /**
   * Creates a registration of the trunk's account at our address. Sends nothing before `register`.
   * @param onLost Called when the connection of the last successful REGISTER was closed, over which a registrar may
   *   send its calls. Never called over UDP or with a drachtio-server.
   */
  openRegistration(trunk: TrunkEndpoint, onLost?: () => void): TrunkRegistration;
  /** Ends legs left by an earlier process, once there is a connection. */
  endLegs(handles: readonly LegHandle[]): void;
  dump(): unknown;
  close(): Promise<void>;
}

/** The binding of one account (RFC 3261 §10). Its REGISTERs share Call-ID, CSeq and nonces. */
export interface TrunkRegistration {
  /** Sends one REGISTER at a time, and repeats it after a challenge or a 423. Never throws. */
  register(request: RegisterRequest): Promise<RegisterOutcome>;
}

export interface RegisterRequest {
  /** Requested time; the registrar decides. 0 removes the binding. */
  expiresS: number;
  /** Destination that overrides resolving the trunk's host. Default: null. */
  nextHop?: NextHop | null;
  signal: AbortSignal;
}

export type RegisterOutcome =
  /** Seconds from now on. */
  | { type: 'registered'; expiresS: number }
  | { type: 'refused'; sipStatus: number; reason: string; retryAfterS: number | null }
  | { type: 'unanswered'; reason: TrunkSilence };

export type SipTransport = 'udp' | 'tcp' | 'tls';

/** A destination that overrides resolving the host of the request URI. */
export interface NextHop {
  /** IPv4 or IPv6. */
  address: string;
  /** Null: the port of the URI, else the default of the transport. */
  port: number | null;
  transport: SipTransport;
}

export interface TrunkEndpoint {
  /** e.g. `sip:carrier.example:5060`. Requests add the called number as user part. */
  sipUri: string;
  /** A `sips:` URI always means TLS. */
  transport: SipTransport;
  /** Destination that overrides resolving the host of `sipUri`. Default: null. */
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
  /** +E.164, sent in From and P-Asserted-Identity (RFC 3325). */
  callerId: string;
  /** +E.164, the user part of the request URI. */
  calledNumber: string;
  /** Dialog at the peer that the leg takes over, as a Replaces header (RFC 3891). Default: none. */
  replaces?: string | null;
  localMedia: { host: string; rtpPort: number };
  /** Sent as X-Tandem-Call-Id so that both sides can match their logs. */
  callId: string;
  /** `agent`, `customer` or the id of an added leg. */
  leg: string;
  /**
   * Aborting gives the leg up: CANCEL or BYE is sent, and the leg's last event comes at once, not with the peer's
   * response. The owner aborts at its deadline for the end of the leg; a leg has no timers.
   */
  signal: AbortSignal;
  onEvent: (event: LegEvent) => void;
  /** Reports what the INVITE showed about the trunk, possibly after the leg's last event. */
  onSign?: (sign: TrunkSign) => void;
  /**
   * Called when the peer of an answered leg sends REFER. Resolves with the status of the response; after 202,
   * `referral.report` reports the outcome. Default: respond 603.
   */
  onReferral?: (referral: Referral) => Promise<number>;
  /**
   * Receives a handle that can end the leg after this process. Called when the leg is answered and, with a SIP server
   * that outlives us, when it is dialed.
   */
  onHandle?: (handle: LegHandle) => void;
}

/** A transfer that a peer requests with REFER (RFC 3515). */
export interface Referral {
  /** User part of Refer-To, or the number of a `tel:` URI, as written by the peer. */
  readonly user: string;
  /** Dialog at the target that the call takes over (RFC 3891), for an attended transfer. Null for a blind one. */
  readonly replaces: string | null;
  /**
   * Reports the final SIP status of the attempt to the peer. Only the first call counts; ignored once the leg has
   * ended.
   */
  report(status: number): void;
}

/**
 * State of a trunk, as shown by a request. Any response of the peer, even a rejection, is `answered`. `no_response`:
 * the transaction timed out. `transport_error`: the next hop cannot be resolved or reached. `busy`: a 503 with
 * Retry-After, which forbids requests until then (RFC 3261 §21.5.4).
 */
export type TrunkSign =
  | { type: 'answered' }
  | { type: 'unanswered'; reason: TrunkSilence }
  | { type: 'busy'; retryAfterS: number };
export type TrunkSilence = 'no_response' | 'transport_error';

/** An inbound call, until it is answered or refused. */
export interface InboundCall {
  /** User part of the request URI, as written by the peer. */
  readonly called: string;
  /** User part of To. A registrar sends calls to our Contact and leaves the number here (RFC 3261 §16.5). */
  readonly to: string;
  /**
   * User part of P-Asserted-Identity (RFC 3325), or else of From. Empty if missing or if the caller requested privacy
   * (RFC 3323).
   */
  readonly caller: string;
  readonly source: { host: string; port: number };
  readonly authorization: string | undefined;
  /** Aborted if the peer gives up before the call is answered or refused. */
  readonly abandoned: AbortSignal;
  /** Whether the caller offers audio with a codec and encryption of the trunk, or leaves the offer to us. */
  offersAudio(trunk: Pick<TrunkEndpoint, 'codecs' | 'mediaEncryption'>): boolean;
  /** Sends 180. */
  ring(): void;
  /** Adds its SIP messages, including earlier ones, to the trace of a leg. */
  traceAs(leg: { callId: string; leg: string }): void;
  /** Sends 401 with this WWW-Authenticate. The authenticated INVITE arrives as another call. */
  challenge(challenge: string): void;
  /** Idempotent; ignored once the call is answered. */
  refuse(cause: HangupCause): void;
  /** Answers the call as a leg, which is `leg.answered` once the peer has acknowledged. Call it once. */
  answer(request: Omit<DialRequest, 'callerId' | 'calledNumber'>): LegDialog;
}

/** Handle to end a leg from another connection or process. Plain JSON, for storage. */
export type LegHandle = InviteHandle | DialogHandle;

/** An INVITE at the SIP server: its transaction, and its dialog once answered. */
export interface InviteHandle {
  kind: 'invite';
  transactionId: string;
  dialogId: string;
}

/** An answered leg: the SIP server's id, and the dialog state of RFC 3261 §12. */
export interface DialogHandle {
  kind: 'dialog';
  dialogId: string;
  callId: string;
  /** Values of From and To of our requests, with their tags. */
  local: string;
  remote: string;
  /** Request URI. Null for a peer without Contact, which only the SIP server with the dialog can reach. */
  target: string | null;
  /** Route headers, nearest first. */
  routes: readonly string[];
  /** CSeq of our last known request. */
  sequence: number;
}

export interface LegDialog {
  /**
   * Sends CANCEL before an answer, BYE after one. A 200 that crosses our CANCEL is acknowledged and ended with BYE (RFC
   * 3261 §9.1). The leg's last `LegEvent` comes with the peer's response. Idempotent.
   */
  hangup(cause: HangupCause): void;
  /**
   * Offers the peer of an answered leg `a=sendonly`, or `a=sendrecv` again (RFC 3264 §8.4). The answer arrives as
   * `leg.media`. A temporary rejection, such as 491, arrives as `leg.glare`, after which the owner calls `offerAgain`.
   * Other rejections change nothing.
   */
  hold(isHeld: boolean): void;
  offerAgain(): void;
}

export interface TrunkProbe {
  reachable: boolean;
  /** Null if the trunk answered. */
  silence: TrunkSilence | null;
  sipStatus: number | null;
  roundTripMs: number;
}
