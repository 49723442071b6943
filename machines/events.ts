/**
 * Vocabulary of all folders: legs, codecs, remote media, and the events from SIP and media to the machines.
 * Serialisable data only.
 */

/** The two parties of a click-to-call, in dialing order. */
export type LegName = 'agent' | 'customer';

export function isLegName(leg: string): leg is LegName {
  return leg === 'agent' || leg === 'customer';
}

/** Name of a leg within its call: `agent`, `customer`, or the id of an added leg. */
export type LegId = string;

export type GuestRole = 'party' | 'supervisor';

/**
 * A supervisor hears every party. `listen`: no party hears the supervisor. `whisper`: only the agent does. `barge`: all
 * do.
 */
export type SupervisionMode = 'listen' | 'whisper' | 'barge';

/**
 * `blind`: the leaving leg is hung up when the target answers. `attended`: it talks to the target first, until the
 * transfer is completed or cancelled.
 */
export type TransferMode = 'blind' | 'attended';

/** `api`: an HTTP request. `refer`: a REFER from the phone of the leaving leg. */
export type TransferRequester = 'api' | 'refer';

export interface Transfer {
  leaving: LegId;
  /** The other party, which waits. */
  staying: LegId;
  target: LegId;
  /** The place that the target takes over. */
  place: LegName;
  mode: TransferMode;
  requestedBy: TransferRequester;
}

/** Destination of a leg: a number dialed over the call's trunk, or a user's browser. */
export type LegEndpoint = { type: 'phone'; number: string } | { type: 'webrtc'; userId: number };

export interface CallLeg {
  legId: LegId;
  role: 'agent' | 'customer' | GuestRole;
  /** The dialed number. Null for a browser, and for agent and customer, whose numbers are stored with the call. */
  number: string | null;
  /** The user whose browser was dialed. Absent for a phone, and for the agent, whose user is stored with the call. */
  userId?: number;
  /** Null unless the leg is a supervisor. */
  mode: SupervisionMode | null;
  state: 'dialing' | 'ringing' | 'answered' | 'held' | 'ended';
  muted: boolean;
  /** ISO 8601; null before the leg answers. */
  joinedAt: string | null;
  leftAt: string | null;
  hangupCause: string | null;
}

/** PCMU and PCMA (ITU-T G.711), G.722 (ITU-T G.722) and Opus (RFC 6716). */
export type Codec = 'PCMU' | 'PCMA' | 'G722' | 'OPUS';

interface CodecDescription {
  /** In our offer: static (RFC 3551 §6), or a dynamic one (96 and above), which the peer may replace. */
  payloadType: number;
  clockHz: number;
  /** Rate of the decoded audio; 16 kHz is wideband. */
  sampleRateHz: 8000 | 16_000;
}

export const CODECS: Readonly<Record<Codec, CodecDescription>> = {
  PCMU: { payloadType: 0, clockHz: 8000, sampleRateHz: 8000 },
  PCMA: { payloadType: 8, clockHz: 8000, sampleRateHz: 8000 },
  // The RTP clock is 8 kHz although the codec samples at 16 kHz (RFC 3551 §4.5.2).
  G722: { payloadType: 9, clockHz: 8000, sampleRateHz: 16_000 },
  // The RTP clock is 48 kHz at every sample rate (RFC 7587 §4.1).
  OPUS: { payloadType: 111, clockHz: 48_000, sampleRateHz: 16_000 },
};

/** A peer's RTP address and parameters, from its SDP answer (RFC 3264). */
export interface RemoteMedia {
  host: string;
  rtpPort: number;
  /** RTCP port: `a=rtcp` (RFC 3605), or `rtpPort` + 1. */
  rtcpPort: number;
  codec: Codec;
  payloadType: number;
  /** Negotiated payload type of telephone-event (RFC 4733), 96-127; null without it. */
  telephoneEventPayloadType: number | null;
  /** Clock rate of telephone-event. Default 8000; with Opus it may be 48000. */
  telephoneEventClockHz?: number;
  /** Whether both sides may send comfort noise in pauses (RFC 3389). Default false. */
  hasComfortNoise?: boolean;
  /** Whether the peer of an Opus leg accepts DTX: no packets in pauses (`usedtx`, RFC 7587 §6.1). Default false. */
  usesDtx?: boolean;
  /** Direction from the peer's point of view: `sendonly` puts us on hold. */
  direction: 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';
  /** Absent for plain RTP. */
  srtp?: SrtpKeys;
  /** The only SSRC that the peer accepts from us. Absent: any. */
  expectedSsrc?: number;
}

/** Media encryption: off; if the peer supports it (RFC 8643); or mandatory for the call. */
export type MediaEncryption = 'none' | 'optional' | 'required';

/** SRTP crypto suites (RFC 4568 §6.2, RFC 7714). */
export type SrtpSuite = 'AES_CM_128_HMAC_SHA1_80' | 'AES_CM_128_HMAC_SHA1_32' | 'AEAD_AES_128_GCM' | 'AEAD_AES_256_GCM';

export interface SrtpKeys {
  suite: SrtpSuite;
  /** Grows with every change of the other fields, because opaque keys cannot be compared. */
  serial: number;
  /** Master key followed by its salt. */
  local: OpaqueKey;
  remote: OpaqueKey;
}

/** A `KeyObject` of `node:crypto`. It can cross threads. Printing or serialising it does not reveal the key. */
export interface OpaqueKey {
  readonly type: string;
  export(): Uint8Array;
}

/** Q.850 cause names as FreeSWITCH writes them, then the platform's own. */
export type HangupCause =
  | 'NORMAL_CLEARING'
  | 'USER_BUSY'
  | 'NO_USER_RESPONSE'
  | 'NO_ANSWER'
  | 'CALL_REJECTED'
  | 'UNALLOCATED_NUMBER'
  | 'NUMBER_CHANGED'
  | 'NO_ROUTE_DESTINATION'
  | 'DESTINATION_OUT_OF_ORDER'
  | 'INVALID_NUMBER_FORMAT'
  | 'FACILITY_REJECTED'
  | 'NORMAL_UNSPECIFIED'
  | 'NORMAL_TEMPORARY_FAILURE'
  | 'NETWORK_OUT_OF_ORDER'
  | 'SWITCH_CONGESTION'
  | 'BEARERCAPABILITY_NOTAVAIL'
  | 'BEARERCAPABILITY_NOTIMPL'
  | 'INCOMPATIBLE_DESTINATION'
  | 'SERVICE_NOT_IMPLEMENTED'
  | 'EXCHANGE_ROUTING_ERROR'
  | 'RECOVERY_ON_TIMER_EXPIRE'
  | 'INTERWORKING'
  | 'ORIGINATOR_CANCEL'
  | 'MEDIA_TIMEOUT'
  | 'BLIND_TRANSFER'
  | 'ATTENDED_TRANSFER'
  | 'MAX_DURATION'
  | 'INSUFFICIENT_FUNDS'
  | 'SYSTEM_SHUTDOWN';

/**
 * Events of one SIP leg. Exactly one of `leg.refused`, `leg.ended` and `leg.lost` ends the leg, as its last event.
 * `leg.ringing` may repeat (180, then 183 with another port). `leg.media` follows every re-negotiation of an answered
 * leg.
 */
export type LegEvent =
  | { type: 'leg.ringing'; sipStatus: number; earlyMedia: RemoteMedia | null }
  | { type: 'leg.answered'; sipStatus: number; media: RemoteMedia }
  | { type: 'leg.media'; media: RemoteMedia }
  | { type: 'leg.pressed'; digit: string; durationMs: number }
  /** Our re-INVITE collided with the peer's, or the server was busy. Send it again after a delay. */
  | { type: 'leg.glare' }
  /**
   * The INVITE ended without a dialog: a final response other than 2xx, a timeout (408) or a failed transport (503).
   */
  | {
      type: 'leg.refused';
      sipStatus: number;
      hangupCause: HangupCause;
      detail: string;
      /** The peer answered without the encryption that the trunk requires. */
      isUnencrypted?: true;
    }
  /** An answered dialog ended: by the BYE of the `peer`, or by our own (`local`). */
  | { type: 'leg.ended'; by: 'peer' | 'local'; hangupCause: HangupCause }
  /** The connection to the SIP server was lost. The state of the leg is unknown. */
  | { type: 'leg.lost'; detail: string };

/** Result of answering machine detection. `machine`: a greeting. `beep`: the machine has started to record. */
export type AnswerResult = 'human' | 'machine' | 'beep' | 'fax' | 'unknown';

/** Events from the media workers. They never carry audio. */
export type MediaEvent<Leg extends string = LegName> =
  | { type: 'rtp.started'; leg: Leg }
  | { type: 'rtp.timeout'; leg: Leg; silentForMs: number }
  /** A telephone event (RFC 4733), unless `by` names another source. */
  | { type: 'dtmf.pressed'; leg: Leg; digit: string; durationMs: number; by?: 'tone' | 'info' }
  /** Answering machine detection: the result, `afterMs` after its start. `beep` may follow `machine`. */
  | { type: 'machine.detected'; leg: Leg; result: AnswerResult; afterMs: number }
  | { type: 'recording.failed'; detail: string }
  /** The first packet of a playback was sent to the leg. `playbackId` is the id that the `play` command gave it. */
  | { type: 'playback.started'; leg: Leg; playbackId?: string }
  /** The consumer of the leg's tap fell too far behind, so the tap was closed. */
  | { type: 'tap.overrun'; leg: Leg }
  /** The media worker of the session died. Its sockets are closed. */
  | { type: 'media.lost'; detail: string };

/** One utterance of a party in a call. Times count from the bridge. */
export interface CallSegment {
  leg: LegId;
  /** Counter per leg. With `leg` it identifies the segment. */
  utteranceId: number;
  text: string;
  /** ISO 639-1. */
  language: string;
  startMs: number;
  endMs: number;
  /** 0 to 1; null if the engine does not report it. */
  confidence: number | null;
  words: CallWord[];
}

export interface CallWord {
  word: string;
  startMs: number;
  endMs: number;
  confidence: number | null;
}

/** Media quality of one leg. Jitter and loss follow RFC 3550 §6.4.1, the MOS estimate ITU-T G.107. */
export interface LegQuality {
  codec: Codec;
  packets_received: number;
  packets_lost: number;
  jitter_ms: number;
  /** E-model estimate, 1.0 to 4.5; null before the first packet. */
  mos: number | null;
  /** Estimated signal-to-noise ratio of the party's speech; null without speech. */
  snr_db: number | null;
  /** Null for plain RTP. */
  encryption: SrtpSuite | null;
}

/** By leg. An added leg without measurements is absent. */
export type CallQuality = Record<LegName, LegQuality | null> & Readonly<Record<LegId, LegQuality | null>>;
