import { isIP } from 'node:net';
import { type MediaDescription, parse, type SessionDescription, write } from 'sdp-transform';
import { CODECS, type Codec, type MediaEncryption, type RemoteMedia } from '../machines/events.ts';
import { isInsideOf, rangeOf } from '../runtime/network-address.ts';
import type { ReadKeys } from './leg-keys.ts';
import { type CryptoLine, cryptoValuesOf, formatCrypto } from './sdes.ts';
import { SipError } from './sip-error.ts';

/**
 * SDP (RFC 8866) as a telephone leg needs it: one audio stream of G.711, G.722 or Opus and telephone-event (RFC 4733), offered
 * and answered by RFC 3264. What peers send is hostile until `readRemoteMedia` or `readOffer` has accepted it.
 */

/** The payload types we offer telephone-event with, by clock; a peer may answer with other ones. */
const OFFERED_TELEPHONE_EVENTS: readonly TelephoneEventFormat[] = [
  { payload: 101, rate: 8000 },
  { payload: 102, rate: 48_000 },
];

/** RFC 3551 §6. */
const COMFORT_NOISE = { payload: 13, codec: 'CN', rate: 8000 } as const;

interface TelephoneEventFormat {
  payload: number;
  rate: number;
}

/** RFC 7587 §6.1: what we make of Opus and want of it. Loss of one packet is made good by the next. */
const OPUS_PARAMETERS = 'maxplaybackrate=16000;sprop-maxcapturerate=16000;maxaveragebitrate=24000;useinbandfec=1';

/** Larger than any SDP a telephone sends, smaller than what makes the line-wise parser slow. */
const MAX_SDP_CHARS = 16_384;
const MAX_SDP_LINES = 400;
/** Each stream costs a line in the answer, which must fit into a datagram. */
const MAX_STREAMS = 16;

const KNOWN_CODECS = Object.keys(CODECS) as Codec[];

/** Our side of a session. `sessionVersion` grows with every description sent (RFC 3264 §8). */
export interface LocalSession {
  host: string;
  rtpPort: number;
  /** Accepted codecs in order of preference. */
  codecs: readonly Codec[];
  /** Comfort noise is offered and accepted, and pauses of Opus are asked for. Default false. */
  hasComfortNoise?: boolean;
  sessionId: number;
  sessionVersion: number;
  /** We have the peer on hold: it may listen and is not to send (RFC 3264 §8.4). Default false. */
  isHolding?: boolean;
}

/** Who reads a description. */
export type Reader = Pick<LocalSession, 'host' | 'codecs' | 'hasComfortNoise'> & {
  /** Where the peer's SIP came from; a peer on this very host may receive media at its loopback. */
  peerHost?: string;
  /** Default `none`. */
  encryption?: MediaEncryption;
  /** Reads the `a=crypto` values of a stream; null when none of them can be used. Default: none can. */
  readKeys?: (values: readonly string[]) => ReadKeys | null;
};

/** What an offer says of encryption. */
interface OfferedEncryption {
  encryption: MediaEncryption;
  crypto: readonly CryptoLine[];
}

/**
 * The SDP text of an offer. Optional encryption is offered as RTP/AVP with `a=crypto` (OSRTP, RFC 8643): a peer that knows
 * nothing of it ignores the attribute, where it would refuse RTP/SAVP and cost a second INVITE.
 */
export function buildOffer(local: LocalSession, { encryption, crypto }: OfferedEncryption = PLAIN): string {
  const protocol = encryption === 'required' ? 'RTP/SAVP' : 'RTP/AVP';
  const direction = local.isHolding ? 'sendonly' : 'sendrecv';
  return write(sessionOf(local, [audioOf(local, { codecs: local.codecs, direction, protocol, crypto })]));
}

const PLAIN: OfferedEncryption = { encryption: 'none', crypto: [] };

/** An answer that was understood. */
export interface ReadAnswer {
  media: RemoteMedia;
  /** Null for plain RTP. */
  keys: ReadKeys | null;
}

/**
 * Reads the peer's answer, of a 200 or of a 183.
 * @throws SipError `sdp.*`
 */
export function readAnswer(sdp: string, local: Reader): ReadAnswer {
  const { media, keys } = readAudio(sdp, parseSession(sdp), local);
  return { media, keys };
}

/** An offer that was understood, and what is needed to answer it. */
export interface ReadOffer extends ReadAnswer {
  session: SessionDescription;
  audioIndex: number;
}

/**
 * Reads the offer of a re-INVITE or UPDATE.
 * @throws SipError `sdp.*`; then the session stays as it was and the answer is a 488.
 */
export function readOffer(sdp: string, local: Reader): ReadOffer {
  const session = parseSession(sdp);
  return { session, ...readAudio(sdp, session, local) };
}

/**
 * The SDP text that answers an offer: the same streams in the same order, all but the audio refused (RFC 3264 §6).
 * Comfort noise is accepted if we would offer it. A peer that wants pauses of Opus is asked for them, too.
 * @param crypto our line, unless media is plain.
 */
export function buildAnswer(local: LocalSession, offer: ReadOffer, crypto: CryptoLine | null = null): string {
  const { media } = offer;
  const streams = offer.session.media.map((offered, index): MediaDescription => {
    if (index !== offer.audioIndex) return refused(offered);
    const direction = (local.isHolding ? HOLDING_DIRECTION : ANSWERING_DIRECTION)[media.direction];
    return audioOf(local, {
      codecs: [media.codec],
      direction,
      accepted: media,
      protocol: crypto === null ? 'RTP/AVP' : offered.protocol!,
      crypto: crypto === null ? [] : [crypto],
    });
  });
  return write(sessionOf(local, streams));
}

const ANSWERING_DIRECTION: Record<RemoteMedia['direction'], RemoteMedia['direction']> = {
  sendrecv: 'sendrecv',
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
};

/** The same, from a side that has the other on hold and does not listen. */
const HOLDING_DIRECTION: Record<RemoteMedia['direction'], RemoteMedia['direction']> = {
  sendrecv: 'sendonly',
  sendonly: 'inactive',
  recvonly: 'sendonly',
  inactive: 'inactive',
};

function sessionOf(local: LocalSession, media: MediaDescription[]): SessionDescription {
  const ipVersion = isIP(local.host) === 6 ? 6 : 4;
  return {
    version: 0,
    origin: {
      username: 'tandem',
      sessionId: local.sessionId,
      sessionVersion: local.sessionVersion,
      netType: 'IN',
      ipVer: ipVersion,
      address: local.host,
    },
    name: 'tandem',
    connection: { version: ipVersion, ip: local.host },
    timing: { start: 0, stop: 0 },
    media,
  };
}

interface AudioOptions {
  codecs: readonly Codec[];
  direction: string;
  protocol: string;
  crypto: readonly CryptoLine[];
  /** In an answer: the payload types that the offer gave to what we accept. */
  accepted?: RemoteMedia;
}

function audioOf(local: LocalSession, options: AudioOptions): MediaDescription {
  const { codecs, direction, accepted, protocol, crypto } = options;
  const rtp = codecs.map((codec) => rtpMapOf(codec, accepted?.payloadType ?? CODECS[codec].payloadType));
  const isPausing = accepted === undefined ? local.hasComfortNoise : accepted.usesDtx;
  const config = isPausing ? `${OPUS_PARAMETERS};usedtx=1` : OPUS_PARAMETERS;
  const fmtp = rtp.filter(({ codec }) => codec === 'opus').map(({ payload }) => ({ payload, config }));
  if (accepted === undefined ? offersComfortNoise(local) : accepted.hasComfortNoise) rtp.push(COMFORT_NOISE);
  for (const { payload, rate } of accepted === undefined ? offeredEvents(codecs) : acceptedEvents(accepted)) {
    rtp.push({ payload, codec: 'telephone-event', rate });
    fmtp.push({ payload, config: '0-15' });
  }
  return {
    type: 'audio',
    port: local.rtpPort,
    protocol,
    payloads: rtp.map((format) => format.payload).join(' '),
    rtp,
    fmtp,
    rtcp: { port: local.rtpPort + 1 },
    ...(crypto.length > 0 && { crypto: crypto.map(formatCrypto) }),
    ptime: 20,
    direction,
  };
}

/** The static payload type is for the clock of 8 kHz (RFC 3389 §4). */
function offersComfortNoise({ codecs, hasComfortNoise = false }: LocalSession): boolean {
  return hasComfortNoise && codecs.some((codec) => CODECS[codec].clockHz === COMFORT_NOISE.rate);
}

function rtpMapOf(codec: Codec, payload: number): MediaDescription['rtp'][number] {
  // Opus is always said to have two channels (RFC 7587 §4.1).
  if (codec === 'OPUS') return { payload, codec: 'opus', rate: CODECS.OPUS.clockHz, encoding: 2 };
  return { payload, codec, rate: CODECS[codec].clockHz };
}

/** One for each clock of the codecs (RFC 4733 §2.1). Many peers with Opus know only that of 8 kHz. */
function offeredEvents(codecs: readonly Codec[]): readonly TelephoneEventFormat[] {
  return OFFERED_TELEPHONE_EVENTS.filter(
    ({ rate }) => rate === 8000 || codecs.some((codec) => CODECS[codec].clockHz === rate),
  );
}

function acceptedEvents(accepted: RemoteMedia): readonly TelephoneEventFormat[] {
  const { telephoneEventPayloadType: payload, telephoneEventClockHz: rate = 8000 } = accepted;
  return payload === null ? [] : [{ payload, rate }];
}

function refused(offered: MediaDescription): MediaDescription {
  return {
    type: offered.type ?? 'audio',
    port: 0,
    protocol: offered.protocol || 'RTP/AVP',
    payloads: String(offered.payloads ?? '0'),
    rtp: [],
    fmtp: [],
  };
}

function parseSession(sdp: string): SessionDescription {
  if (sdp.length > MAX_SDP_CHARS) throw new SipError('sdp.unreadable', 'the SDP is too long');
  if (!sdp.startsWith('v=0')) throw new SipError('sdp.unreadable', 'the SDP does not begin with v=0');
  if (sdp.split('\n', MAX_SDP_LINES + 1).length > MAX_SDP_LINES) {
    throw new SipError('sdp.unreadable', 'the SDP has too many lines');
  }
  const session = tryToParse(sdp);
  if (session.media.length > MAX_STREAMS) throw new SipError('sdp.unreadable', 'the SDP has too many streams');
  return session;
}

function tryToParse(sdp: string): SessionDescription {
  try {
    return parse(sdp);
  } catch (cause) {
    throw new SipError('sdp.unreadable', 'the SDP could not be read', { cause });
  }
}

function readAudio(sdp: string, session: SessionDescription, local: Reader) {
  const { audio, audioIndex, keys } = chooseAudio(session, cryptoValuesOf(sdp), local);
  const host = readHost(audio.connection?.ip ?? session.connection?.ip, local);
  const rtpPort = audio.port!;
  const codec = readCodec(audio, local.codecs);
  const media: RemoteMedia = {
    host,
    rtpPort,
    rtcpPort: readRtcpPort(audio, rtpPort),
    ...codec,
    ...readTelephoneEvent(audio, CODECS[codec.codec].clockHz),
    ...(takesComfortNoise(audio, codec.codec, local) && { hasComfortNoise: true }),
    ...(usesDtx(audio, codec) && { usesDtx: true }),
    direction: readDirection(audio.direction ?? session.direction, host),
    ...(keys !== null && { srtp: keys.keys }),
  };
  return { media, audioIndex, keys };
}

/** The first audio stream whose keys can be used; else the first plain one, if that will do. */
function chooseAudio(
  session: SessionDescription,
  cryptoValues: readonly (readonly string[])[],
  { encryption = 'none', readKeys = () => null }: Reader,
): { audio: MediaDescription; audioIndex: number; keys: ReadKeys | null } {
  const streams = [...session.media.entries()].filter(([, media]) => isAudio(media));
  if (encryption !== 'none') {
    for (const [audioIndex, audio] of streams) {
      const keys = readKeys(cryptoValues[audioIndex] ?? []);
      if (keys !== null) return { audio, audioIndex, keys };
    }
    if (encryption === 'required' && streams.length > 0) {
      throw new SipError('sdp.not_encrypted', 'the SDP has no audio stream with a usable a=crypto');
    }
  }
  const plain = streams.find(([, media]) => PLAIN_PROFILES.has(media.protocol!));
  if (plain === undefined) throw new SipError('sdp.no_audio', 'the SDP has no audio stream over RTP/AVP');
  return { audio: plain[1], audioIndex: plain[0], keys: null };
}

const PLAIN_PROFILES: ReadonlySet<string> = new Set(['RTP/AVP', 'RTP/AVPF']);
const PROFILES: ReadonlySet<string> = new Set([...PLAIN_PROFILES, 'RTP/SAVP', 'RTP/SAVPF']);

/** Port 0 is a refused stream (RFC 3264 §6). */
function isAudio(media: MediaDescription): boolean {
  return (
    media.type === 'audio' && PROFILES.has(media.protocol ?? '') && isPort(media.port) && media.payloads !== undefined
  );
}

/**
 * Only an address of our own family that one host can have: media must never resolve names or send to a group. The
 * loopback of this very host is a peer's only when one of us speaks from there. For a private address behind a public one,
 * the public one.
 */
function readHost(host: string | undefined, reader: Reader): string {
  const family = isIP(reader.host) === 6 ? 6 : 4;
  if (host === undefined || isIP(host) !== family || !isHostAddress(host, reader)) {
    throw new SipError('sdp.bad_address', `the SDP has no usable IPv${family} connection address`);
  }
  const { peerHost = '' } = reader;
  const isHeld = rangeOf(host) === 'unspecified';
  return !isHeld && isIP(peerHost) === family && isInsideOf(peerHost, host) ? peerHost : host;
}

function isHostAddress(host: string, { host: localHost, peerHost = '' }: Reader): boolean {
  const range = rangeOf(host);
  if (range === 'loopback') return LOCAL_RANGES.has(rangeOf(localHost)) || rangeOf(peerHost) === 'loopback';
  // An address of zero is the hold of RFC 2543; the others of its range are nobody's.
  if (range === 'unspecified') return host === '0.0.0.0' || host === '::';
  return range !== 'multicast' && range !== 'broadcast' && !(range === 'reserved' && /^2[45]\d\./.test(host));
}

const LOCAL_RANGES: ReadonlySet<string> = new Set(['loopback', 'unspecified', 'name']);

function readRtcpPort(audio: MediaDescription, rtpPort: number): number {
  if (isPort(audio.rtcp?.port)) return audio.rtcp.port;
  return rtpPort < 65_535 ? rtpPort + 1 : rtpPort;
}

/** The first codec in the peer's order that is also ours. */
function readCodec(audio: MediaDescription, ours: readonly Codec[]): { codec: Codec; payloadType: number } {
  for (const payloadType of payloadTypesOf(audio)) {
    const codec = codecOf(audio, payloadType);
    if (codec !== null && ours.includes(codec)) return { codec, payloadType };
  }
  throw new SipError('sdp.no_common_codec', 'the SDP has no codec in common with ours');
}

function codecOf(audio: MediaDescription, payloadType: number): Codec | null {
  const mapped = audio.rtp.find((format) => format.payload === payloadType);
  if (mapped === undefined) {
    // Static payload types need no rtpmap (RFC 3551 §6).
    return KNOWN_CODECS.find((codec) => CODECS[codec].payloadType === payloadType) ?? null;
  }
  const name = String(mapped.codec).toUpperCase();
  const codec = KNOWN_CODECS.find((known) => known === name);
  if (codec === undefined) return null;
  const channels = codec === 'OPUS' ? 2 : 1;
  const isAsKnown = (mapped.rate ?? 8000) === CODECS[codec].clockHz && Number(mapped.encoding ?? 1) === channels;
  return isAsKnown ? codec : null;
}

function usesDtx(audio: MediaDescription, { codec, payloadType }: Pick<RemoteMedia, 'codec' | 'payloadType'>): boolean {
  if (codec !== 'OPUS') return false;
  const config = audio.fmtp.find(({ payload }) => payload === payloadType)?.config ?? '';
  return config.split(';').some((parameter) => /^usedtx=1$/i.test(parameter.trim()));
}

function takesComfortNoise(audio: MediaDescription, codec: Codec, { hasComfortNoise = false }: Reader): boolean {
  const { payload, rate } = COMFORT_NOISE;
  if (!hasComfortNoise || CODECS[codec].clockHz !== rate || !payloadTypesOf(audio).includes(payload)) return false;
  const mapped = audio.rtp.find((format) => format.payload === payload);
  return mapped === undefined || (String(mapped.codec).toUpperCase() === 'CN' && (mapped.rate ?? rate) === rate);
}

/** Preferably with the clock of the codec, as it has to be (RFC 4733 §2.1); else with 8 kHz, which phones use with Opus too. */
function readTelephoneEvent(
  audio: MediaDescription,
  clockHz: number,
): Pick<RemoteMedia, 'telephoneEventPayloadType' | 'telephoneEventClockHz'> {
  const listed = payloadTypesOf(audio);
  const events = audio.rtp.filter(
    ({ payload, codec }) =>
      String(codec).toLowerCase() === 'telephone-event' && payload >= 96 && payload <= 127 && listed.includes(payload),
  );
  const withClock = (hz: number) => events.find(({ rate }) => (rate ?? 8000) === hz)?.payload;
  const payload = withClock(clockHz);
  if (payload === undefined) return { telephoneEventPayloadType: withClock(8000) ?? null };
  return { telephoneEventPayloadType: payload, ...(clockHz !== 8000 && { telephoneEventClockHz: clockHz }) };
}

function payloadTypesOf(audio: MediaDescription): number[] {
  return String(audio.payloads)
    .split(' ')
    .filter((format) => /^\d{1,3}$/.test(format))
    .map(Number)
    .filter((payloadType) => payloadType <= 127);
}

/** A connection address of zero is the hold of RFC 2543: nothing may be sent there (RFC 3264 §8.4). */
function readDirection(direction: string | undefined, host: string): RemoteMedia['direction'] {
  const attribute = direction === 'sendonly' || direction === 'recvonly' || direction === 'inactive' ? direction : null;
  const isHeldByAddress = host === '0.0.0.0' || host === '::';
  if (!isHeldByAddress) return attribute ?? 'sendrecv';
  return attribute === 'recvonly' || attribute === 'inactive' ? 'inactive' : 'sendonly';
}

function isPort(port: unknown): port is number {
  return typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535;
}
