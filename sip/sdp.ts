import { isIP } from 'node:net';
import { type MediaDescription, parse, type SessionDescription, write } from 'sdp-transform';
import { CODECS, type Codec, type MediaEncryption, type RemoteMedia } from '../machines/events.ts';
import { isInsideOf, rangeOf } from '../runtime/network-address.ts';
import type { ReadKeys } from './leg-keys.ts';
import { type CryptoLine, cryptoValuesOf, formatCrypto } from './sdes.ts';
import { SipError } from './sip-error.ts';

/**
 * SDP (RFC 8866) for a telephone leg: one audio stream of G.711, G.722 or Opus with telephone-event (RFC 4733),
 * negotiated by RFC 3264. Peer input is untrusted until `readAnswer` or `readOffer` has accepted it.
 */

/** Offered payload types of telephone-event, by clock. A peer may answer with others. */
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

/** RFC 7587 §6.1: our Opus parameters. With FEC, the next packet repairs the loss of one. */
const OPUS_PARAMETERS = 'maxplaybackrate=16000;sprop-maxcapturerate=16000;maxaveragebitrate=24000;useinbandfec=1';

/** Larger than any telephone's SDP, and small enough for the slow line-wise parser. */
const MAX_SDP_CHARS = 16_384;
const MAX_SDP_LINES = 400;
/** Each stream adds a line to the answer, which must fit into a datagram. */
const MAX_STREAMS = 16;

const KNOWN_CODECS = Object.keys(CODECS) as Codec[];

/** Our side of a session. `sessionVersion` grows with every description sent (RFC 3264 §8). */
export interface LocalSession {
  host: string;
  rtpPort: number;
  /** Accepted codecs in order of preference. */
  codecs: readonly Codec[];
  /** Offers and accepts comfort noise, and requests DTX for Opus. Default false. */
  hasComfortNoise?: boolean;
  sessionId: number;
  sessionVersion: number;
  /** We hold the peer: it may receive but must not send (RFC 3264 §8.4). Default false. */
  isHolding?: boolean;
  /** Streams of the peer's last offer, all listed in every later one (RFC 3264 §8). Default: only the audio. */
  streams?: { media: readonly MediaDescription[]; audioIndex: number };
}

/** Context for reading a description. */
export type Reader = Pick<LocalSession, 'host' | 'codecs' | 'hasComfortNoise'> & {
  /** Source of the peer's SIP. Only a peer on this host may use a loopback media address. */
  peerHost?: string;
  /** Default `none`. */
  encryption?: MediaEncryption;
  /** Parses the `a=crypto` values of a stream; null if none is usable. Default: none is. */
  readKeys?: (values: readonly string[]) => ReadKeys | null;
};

interface OfferedEncryption {
  encryption: MediaEncryption;
  crypto: readonly CryptoLine[];
}

/**
 * The SDP text of an offer. Optional encryption is offered as RTP/AVP with `a=crypto` (OSRTP, RFC 8643). A peer without
 * support ignores the attribute, but would reject RTP/SAVP, which would cost a second INVITE.
 */
export function buildOffer(local: LocalSession, { encryption, crypto }: OfferedEncryption = PLAIN): string {
  const protocol = encryption === 'required' ? 'RTP/SAVP' : 'RTP/AVP';
  const direction = local.isHolding ? 'sendonly' : 'sendrecv';
  const audio = audioOf(local, { codecs: local.codecs, direction, protocol, crypto });
  const { media, audioIndex } = local.streams ?? { media: [audio], audioIndex: 0 };
  const streams = media.map((each, index) => (index === audioIndex ? audio : refused(each)));
  return write(sessionOf(local, streams));
}

const PLAIN: OfferedEncryption = { encryption: 'none', crypto: [] };

export interface ReadAnswer {
  media: RemoteMedia;
  /** Null for plain RTP. */
  keys: ReadKeys | null;
}

/**
 * Parses the answer in a 200 or 183.
 * @throws SipError `sdp.*`
 */
export function readAnswer(sdp: string, local: Reader): ReadAnswer {
  const { media, keys } = readAudio(sdp, parseSession(sdp), local);
  return { media, keys };
}

/** A parsed offer, with the context for answering it. */
export interface ReadOffer extends ReadAnswer {
  session: SessionDescription;
  audioIndex: number;
}

/**
 * Parses the offer of a re-INVITE or UPDATE.
 * @throws SipError `sdp.*`; the session then stays unchanged and the response is 488.
 */
export function readOffer(sdp: string, local: Reader): ReadOffer {
  const session = parseSession(sdp);
  return { session, ...readAudio(sdp, session, local) };
}

/** Whether an offer has an audio stream with a codec and encryption of ours. Ignores addresses. */
export function offersAudio(sdp: string, local: Pick<Reader, 'codecs' | 'encryption' | 'readKeys'>): boolean {
  try {
    const streams = audioStreams(parseSession(sdp), cryptoValuesOf(sdp), local);
    return streams.some(({ audio }) => commonCodec(audio, local.codecs) !== null);
  } catch {
    return false;
  }
}

/**
 * Parses an offer or answer that leaves no stream: the peer has removed its audio, which some peers do to hold a call
 * (RFC 3264 §8.2). Null for any other.
 * @throws SipError `sdp.unreadable`
 */
export function readWithoutStreams(sdp: string): NonNullable<LocalSession['streams']> | null {
  const { media } = parseSession(sdp);
  const audioIndex = media.findIndex(({ type }) => type === 'audio');
  return audioIndex >= 0 && media.every(({ port }) => port === 0) ? { media, audioIndex } : null;
}

/** The SDP text that answers such an offer. */
export function buildEmptyAnswer(local: LocalSession, { media }: NonNullable<LocalSession['streams']>): string {
  return write(sessionOf(local, media.map(refused)));
}

/**
 * The SDP text that answers an offer: the same streams in the same order, all but the audio rejected (RFC 3264 §6).
 * Accepts comfort noise and Opus DTX as we would offer them.
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
      // RFC 3264 §6: the same as in the offer.
      protocol: offered.protocol!,
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

/** The same while we hold the peer, and do not receive. */
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
  /** In an answer: the payload types of the offer for the accepted formats. */
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

/** The static payload type requires a clock of 8 kHz (RFC 3389 §4). */
function offersComfortNoise({ codecs, hasComfortNoise = false }: LocalSession): boolean {
  return hasComfortNoise && codecs.some((codec) => CODECS[codec].clockHz === COMFORT_NOISE.rate);
}

function rtpMapOf(codec: Codec, payload: number): MediaDescription['rtp'][number] {
  // Opus is always written with two channels (RFC 7587 §4.1).
  if (codec === 'OPUS') return { payload, codec: 'opus', rate: CODECS.OPUS.clockHz, encoding: 2 };
  return { payload, codec, rate: CODECS[codec].clockHz };
}

/** One for each clock of the codecs (RFC 4733 §2.1). Many Opus peers support only 8 kHz. */
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
    return parse(sdp.replace(NUMBER_OF_PORTS, '$1'));
  } catch (cause) {
    throw new SipError('sdp.unreadable', 'the SDP could not be read', { cause });
  }
}

/** `m=audio 5004/1` (RFC 8866 §5.14), which `sdp-transform` cannot read. We send to the first port. */
const NUMBER_OF_PORTS = /^(m=\S+ \d+)\/\d+(?= )/gm;

/** Reads the first usable audio stream. @throws SipError of the first stream if none is usable. */
function readAudio(sdp: string, session: SessionDescription, local: Reader) {
  const streams = audioStreams(session, cryptoValuesOf(sdp), local);
  let firstError: unknown;
  for (const { audio, audioIndex, keys } of streams) {
    try {
      return { media: readStream(audio, { session, keys, local }), audioIndex, keys };
    } catch (error) {
      firstError ??= error;
    }
  }
  throw firstError;
}

interface StreamContext {
  session: SessionDescription;
  keys: ReadKeys | null;
  local: Reader;
}

function readStream(audio: MediaDescription, { session, keys, local }: StreamContext): RemoteMedia {
  const host = readHost(audio.connection?.ip ?? session.connection?.ip, local);
  const rtpPort = audio.port!;
  const codec = readCodec(audio, local.codecs);
  return {
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
}

interface AudioStream {
  audio: MediaDescription;
  audioIndex: number;
  keys: ReadKeys | null;
}

/** The audio streams with usable keys, then the plain ones, if allowed. At least one. */
function audioStreams(
  session: SessionDescription,
  cryptoValues: readonly (readonly string[])[],
  { encryption = 'none', readKeys = () => null }: Pick<Reader, 'encryption' | 'readKeys'>,
): AudioStream[] {
  const streams = session.media.flatMap((audio, audioIndex) => (isAudio(audio) ? [{ audio, audioIndex }] : []));
  const encrypted = streams.flatMap(({ audio, audioIndex }) => {
    const keys = encryption === 'none' ? null : readKeys(cryptoValues[audioIndex] ?? []);
    return keys === null ? [] : [{ audio, audioIndex, keys }];
  });
  if (encryption === 'required') {
    if (encrypted.length > 0 || streams.length === 0) return requireAudio(encrypted);
    throw new SipError('sdp.not_encrypted', 'the SDP has no audio stream with a usable a=crypto');
  }
  const plain = streams.filter(({ audio }) => PLAIN_PROFILES.has(audio.protocol!));
  return requireAudio([...encrypted, ...plain.map((each) => ({ ...each, keys: null }))]);
}

function requireAudio(streams: AudioStream[]): AudioStream[] {
  if (streams.length > 0) return streams;
  throw new SipError('sdp.no_audio', 'the SDP has no audio stream over RTP/AVP');
}

const PLAIN_PROFILES: ReadonlySet<string> = new Set(['RTP/AVP', 'RTP/AVPF']);
const PROFILES: ReadonlySet<string> = new Set([...PLAIN_PROFILES, 'RTP/SAVP', 'RTP/SAVPF']);

/** Port 0 is a rejected stream (RFC 3264 §6). */
function isAudio(media: MediaDescription): boolean {
  return (
    media.type === 'audio' && PROFILES.has(media.protocol ?? '') && isPort(media.port) && media.payloads !== undefined
  );
}

/**
 * Validates the media address: a unicast address of our own family, because media must never resolve names or be sent
 * to a group. Loopback is valid only if we or the peer use it. If a peer at a public address names a private one,
 * returns the public one.
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
  // A zero address is the hold of RFC 2543. Others of its range are invalid.
  if (range === 'unspecified') return host === '0.0.0.0' || host === '::';
  return range !== 'multicast' && range !== 'broadcast' && !(range === 'reserved' && /^2[45]\d\./.test(host));
}

const LOCAL_RANGES: ReadonlySet<string> = new Set(['loopback', 'unspecified', 'name']);

function readRtcpPort(audio: MediaDescription, rtpPort: number): number {
  if (isPort(audio.rtcp?.port)) return audio.rtcp.port;
  return rtpPort < 65_535 ? rtpPort + 1 : rtpPort;
}

function readCodec(audio: MediaDescription, ours: readonly Codec[]): { codec: Codec; payloadType: number } {
  const common = commonCodec(audio, ours);
  if (common === null) throw new SipError('sdp.no_common_codec', 'the SDP has no codec in common with ours');
  return common;
}

/** The first codec in the peer's order that we support. */
function commonCodec(audio: MediaDescription, ours: readonly Codec[]): { codec: Codec; payloadType: number } | null {
  for (const payloadType of payloadTypesOf(audio)) {
    const codec = codecOf(audio, payloadType);
    if (codec !== null && ours.includes(codec)) return { codec, payloadType };
  }
  return null;
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

/** Prefers the clock of the codec, as RFC 4733 §2.1 requires; else 8 kHz, which phones use with Opus too. */
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

/** A zero connection address is the hold of RFC 2543: nothing may be sent there (RFC 3264 §8.4). */
function readDirection(direction: string | undefined, host: string): RemoteMedia['direction'] {
  const attribute = direction === 'sendonly' || direction === 'recvonly' || direction === 'inactive' ? direction : null;
  const isHeldByAddress = host === '0.0.0.0' || host === '::';
  if (!isHeldByAddress) return attribute ?? 'sendrecv';
  return attribute === 'recvonly' || attribute === 'inactive' ? 'inactive' : 'sendonly';
}

function isPort(port: unknown): port is number {
  return typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535;
}
