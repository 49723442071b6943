/**
 * The words every part of Tandem shares: legs, codecs, remote media, and the events that cross from SIP and media
 * into the machines. Plain serialisable data only.
 */

/** The two parties of a click-to-call, in the order they are dialed. */
export type LegName = 'agent' | 'customer';

/** Whether a leg is one of the two that a call is for. */
export function isLegName(leg: string): leg is LegName {
  return leg === 'agent' || leg === 'customer';
}

/** Names a leg within its call: `agent`, `customer`, or the id of a leg that was added. */
export type LegId = string;

/** A leg that was added to a talk, as a third party or as a supervisor. */
export type GuestRole = 'party' | 'supervisor';

/** A supervisor hears everybody, and is heard by nobody, by the agent alone, or by everybody. */
export type SupervisionMode = 'listen' | 'whisper' | 'barge';

/**
 * `blind`: the leaving leg goes as soon as the target answers. `attended`: the two talk first, until the transfer is completed
 * or cancelled.
 */
export type TransferMode = 'blind' | 'attended';

/** `api`: an HTTP request. `refer`: a REFER from the phone that leaves. */
export type TransferRequester = 'api' | 'refer';

/** A leg that is about to take the place of another. */
export interface Transfer {
  leaving: LegId;
  /** The other of the two, which waits. */
  staying: LegId;
  /** The leg that was dialed. */
  target: LegId;
  /** The place that changes hands. */
  place: LegName;
  mode: TransferMode;
  requestedBy: TransferRequester;
}

/** What is dialed for a leg: a number over the trunk of the call, or the browser of a user. */
export type LegEndpoint = { type: 'phone'; number: string } | { type: 'webrtc'; userId: number };

export interface CallLeg {
  legId: LegId;
  role: 'agent' | 'customer' | GuestRole;
  /** The number that was dialed; null for a browser, and where the call has it: for agent and customer. */
  number: string | null;
  /** The user whose browser was dialed. Absent for a phone, and where the call has it: for the agent. */
  userId?: number;
  /** Null unless it is a supervisor. */
  mode: SupervisionMode | null;
  state: 'dialing' | 'ringing' | 'answered' | 'held' | 'ended';
  muted: boolean;
  /** ISO 8601. Null before it answered. */
  joinedAt: string | null;
  leftAt: string | null;
  hangupCause: string | null;
}

/** G.711 (ITU-T G.711), with both laws, G.722 (ITU-T G.722) and Opus (RFC 6716). */
export type Codec = 'PCMU' | 'PCMA' | 'G722' | 'OPUS';

interface CodecDescription {
  /** That we offer: static (RFC 3551 §6), or from 96 on one that a peer may replace. */
  payloadType: number;
  /** Of RTP timestamps. */
  clockHz: number;
  /** Of the sound: 16 kHz is wideband. */
  sampleRateHz: 8000 | 16_000;
}

export const CODECS: Readonly<Record<Codec, CodecDescription>> = {
  PCMU: { payloadType: 0, clockHz: 8000, sampleRateHz: 8000 },
  PCMA: { payloadType: 8, clockHz: 8000, sampleRateHz: 8000 },
  // Its clock is 8 kHz, whatever it samples at (RFC 3551 §4.5.2).
  G722: { payloadType: 9, clockHz: 8000, sampleRateHz: 16_000 },
  // Its clock is 48 kHz, whatever is sampled (RFC 7587 §4.1).
  OPUS: { payloadType: 111, clockHz: 48_000, sampleRateHz: 16_000 },
};

/** Where and how a peer wants its RTP, read from its SDP answer (RFC 3264). */
export interface RemoteMedia {
  host: string;
  rtpPort: number;
  /** Port of the peer's RTCP: `a=rtcp` (RFC 3605) or rtpPort + 1. */
  rtcpPort: number;
  codec: Codec;
  payloadType: number;
  /** Payload type of telephone-event (RFC 4733) that the peer agreed to, 96-127; null when it did not. */
  telephoneEventPayloadType: number | null;
  /** Clock of telephone-event. Default 8000; a peer with Opus may use the clock of Opus. */
  telephoneEventClockHz?: number;
  /** Both sides may send comfort noise instead of audio in pauses (RFC 3389). Default false. */
  hasComfortNoise?: boolean;
  /** The peer of an Opus leg wants no packets in pauses (`usedtx`, RFC 7587 §6.1). Default false. */
  usesDtx?: boolean;
  /** The peer's direction attribute as seen from the peer: `sendonly` means we are on hold. */
  direction: 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';
  /** Keys of SRTP; absent for plain RTP. */
  srtp?: SrtpKeys;
  /** SSRC of our RTP, for a peer that accepts no other. Absent: any. */
  expectedSsrc?: number;
}

/** Whether media is encrypted: never; if the peer can (RFC 8643); or else there is no call. */
export type MediaEncryption = 'none' | 'optional' | 'required';

/** Crypto suites of SRTP (RFC 4568 §6.2, RFC 7714). */
export type SrtpSuite = 'AES_CM_128_HMAC_SHA1_80' | 'AES_CM_128_HMAC_SHA1_32' | 'AEAD_AES_128_GCM' | 'AEAD_AES_256_GCM';

/** What both sides of a leg encrypt with. */
export interface SrtpKeys {
  suite: SrtpSuite;
  /** Grows when any of the rest changes, because keys do not show that they differ. */
  serial: number;
  /** Ours, then the peer's: each a master key followed by its salt. */
  local: OpaqueKey;
  remote: OpaqueKey;
}

/** A `KeyObject` of `node:crypto`. It crosses threads; printed or serialised it shows nothing of the key. */
export interface OpaqueKey {
  readonly type: string;
  export(): Uint8Array;
}

/** Names of Q.850 causes as FreeSWITCH writes them, plus the platform's own at the end. */
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
 * What one SIP leg reports. Exactly one of `leg.refused`, `leg.ended`, `leg.lost` ends a leg; nothing follows it.
 * `leg.ringing` may come many times (180, then 183 with another port) and `leg.media` whenever an answered peer
 * re-negotiates.
 */
export type LegEvent =
  | { type: 'leg.ringing'; sipStatus: number; earlyMedia: RemoteMedia | null }
  | { type: 'leg.answered'; sipStatus: number; media: RemoteMedia }
  | { type: 'leg.media'; media: RemoteMedia }
  /** A key that the peer of an answered leg brought in an INFO. */
  | { type: 'leg.pressed'; digit: string; durationMs: number }
  /** Our re-INVITE met one of the peer, or a server that was busy: it has to be sent again after a while. */
  | { type: 'leg.glare' }
  /** The INVITE ended without a dialog: a final answer other than 2xx, a timeout (408), a dead transport (503). */
  | {
      type: 'leg.refused';
      sipStatus: number;
      hangupCause: HangupCause;
      detail: string;
      /** The peer answered without the encryption that the trunk requires. */
      isUnencrypted?: true;
    }
  /** An answered dialog ended. `by` is `peer` for a BYE received, `local` for one we asked for. */
  | { type: 'leg.ended'; by: 'peer' | 'local'; hangupCause: HangupCause }
  /** The SIP server went away: what became of the leg is not known. */
  | { type: 'leg.lost'; detail: string };

/** Who or what has answered a call. `machine` is a machine that talks, `beep` one that has begun to record. */
export type AnswerResult = 'human' | 'machine' | 'beep' | 'fax' | 'unknown';

/** Edges that media workers post. Audio itself never becomes an event. */
export type MediaEvent<Leg extends string = LegName> =
  | { type: 'rtp.started'; leg: Leg }
  | { type: 'rtp.timeout'; leg: Leg; silentForMs: number }
  /** Brought by a telephone event (RFC 4733) unless `by` says that it was a tone or an INFO. */
  | { type: 'dtmf.pressed'; leg: Leg; digit: string; durationMs: number; by?: 'tone' | 'info' }
  /** Who or what has answered a leg, `afterMs` after detection began. A `beep` may follow a `machine`. */
  | { type: 'machine.detected'; leg: Leg; result: AnswerResult; afterMs: number }
  | { type: 'recording.failed'; detail: string }
  /** The first of what is played to the leg is on its way; `playbackId` as whoever plays it calls it. */
  | { type: 'playback.started'; leg: Leg; playbackId?: string }
  /** Whoever listens to the tap of a leg has fallen too far behind. That tap has ended. */
  | { type: 'tap.overrun'; leg: Leg }
  /** The worker that owned the session died. Its sockets are gone. */
  | { type: 'media.lost'; detail: string };

/** What one party of a call said between two pauses, as it was understood. Times count from the bridge. */
export interface CallSegment {
  leg: LegId;
  /** Counts the utterances of a leg; with the leg it names the segment. */
  utteranceId: number;
  text: string;
  /** ISO 639-1. */
  language: string;
  startMs: number;
  endMs: number;
  /** 0 to 1; null where the engine has none. */
  confidence: number | null;
  words: CallWord[];
}

export interface CallWord {
  word: string;
  startMs: number;
  endMs: number;
  confidence: number | null;
}

/** What was measured on one leg (RFC 3550 §6.4.1 for jitter and loss; ITU-T G.107 for the MOS estimate). */
export interface LegQuality {
  codec: Codec;
  packets_received: number;
  packets_lost: number;
  jitter_ms: number;
  /** 1.0 to 4.5, E-model estimate; null before anything was received. */
  mos: number | null;
  /** Estimated signal-to-noise ratio of what the party said; null without speech. */
  snr_db: number | null;
  /** Crypto suite of SRTP; null for plain RTP. */
  encryption: SrtpSuite | null;
}

/** By leg; an added leg is absent if nothing was measured. */
export type CallQuality = Record<LegName, LegQuality | null> & Readonly<Record<LegId, LegQuality | null>>;
