import type { SrtpSuite } from '../machines/events.ts';

/**
 * `a=crypto` attributes (RFC 4568): a master key for each crypto suite, inside the SDP. SIP messages therefore contain
 * keys and must not be logged. Peer input is untrusted; unknown lines are declined.
 */

/** Bytes of master key and salt (RFC 4568 §6.2, RFC 7714 §14.1). */
export const MASTER_KEY_BYTES: Readonly<Record<SrtpSuite, number>> = {
  AES_CM_128_HMAC_SHA1_80: 30,
  AES_CM_128_HMAC_SHA1_32: 30,
  AEAD_AES_128_GCM: 28,
  AEAD_AES_256_GCM: 44,
};

export interface CryptoLine {
  /** 1 to 9 digits; identifies the line in the answer. */
  tag: string;
  suite: SrtpSuite;
  /** Master key followed by its salt. */
  masterKey: Buffer;
}

/** A peer may offer each suite a few times; more is an attack. */
const MAX_LINES = 20;
/** RFC 4568 §6.1: the most packets per key, for RTP and for RTCP. */
const MOST_LIFETIME = 2 ** 48;

/** The attribute for `sdp-transform`. */
export function formatCrypto({ tag, suite, masterKey }: CryptoLine): { id: string; suite: string; config: string } {
  return { id: tag, suite, config: `inline:${masterKey.toString('base64')}` };
}

/** The usable lines of one stream, in the peer's order. `values` are the texts after each `a=crypto:`. */
export function readCrypto(values: readonly string[]): CryptoLine[] {
  const lines = values.slice(0, MAX_LINES).map(readLine);
  return lines.filter((line) => line !== null);
}

/** The texts after each `a=crypto:`, by stream of an SDP. `sdp-transform` keeps only the first session parameter. */
export function cryptoValuesOf(sdp: string): string[][] {
  const streams: string[][] = [];
  for (const line of sdp.split(/\r\n|\r|\n/)) {
    if (line.startsWith('m=')) streams.push([]);
    else if (/^a=crypto:/i.test(line)) streams.at(-1)?.push(line.slice('a=crypto:'.length));
  }
  return streams;
}

function readLine(value: string): CryptoLine | null {
  const [tag = '', name = '', parameters = '', ...sessionParameters] = value.trim().split(/[ \t]+/);
  const suite = name.toUpperCase();
  if (!/^\d{1,9}$/.test(tag) || !isSuite(suite) || !sessionParameters.every(isHarmless)) return null;
  const masterKey = readKey(parameters, MASTER_KEY_BYTES[suite]);
  return masterKey === null ? null : { tag, suite, masterKey };
}

function isSuite(name: string): name is SrtpSuite {
  return Object.hasOwn(MASTER_KEY_BYTES, name);
}

/**
 * RFC 4568 §6.3: a parameter that starts with a dash may be ignored. A replay window (WSH) is a hint, and a key
 * derivation rate of 0 the default. All others change packets, or leave them unprotected.
 */
function isHarmless(parameter: string): boolean {
  return parameter.startsWith('-') || /^WSH=\d{1,4}$/i.test(parameter) || /^KDR=0$/i.test(parameter);
}

/**
 * Parses `inline:key||salt["|"lifetime]["|"MKI:length]`. Declines several keys, or one with an MKI, which no carrier
 * needs. The lifetime concerns the sender, which must change the key in time.
 */
function readKey(parameters: string, bytes: number): Buffer | null {
  if (parameters.includes(';')) return null;
  const match = /^inline:([A-Za-z0-9+/]{1,64}={0,2})(?:\|(2\^\d{1,2}|\d{1,15}))?$/i.exec(parameters);
  if (match === null || !isLifetime(match[2])) return null;
  const key = Buffer.from(match[1]!, 'base64');
  return key.length === bytes ? key : null;
}

function isLifetime(text: string | undefined): boolean {
  if (text === undefined) return true;
  const packets = text.startsWith('2^') ? 2 ** Number(text.slice(2)) : Number(text);
  return packets >= 1 && packets <= MOST_LIFETIME;
}
