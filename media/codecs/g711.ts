/**
 * ITU-T G.711 companding with lookup tables. Linear samples are 16-bit signed; an octet is one sample at 8 kHz. PCMU is
 * mu-law (RFC 3551 §4.5.14), PCMA is A-law. Encoders and decoders stop at the end of the shorter buffer.
 */

/** Added to a magnitude, so that the segments of mu-law begin at powers of two. */
const MULAW_BIAS = 0x84;

/** Linear sample by octet. */
export const MULAW_TO_LINEAR: Int16Array = Int16Array.from({ length: 256 }, (_, octet) => decodeMulawOctet(octet));
export const ALAW_TO_LINEAR: Int16Array = Int16Array.from({ length: 256 }, (_, octet) => decodeAlawOctet(octet));

/** Octet by sample, read as unsigned 16 bits (`sample & 0xffff`). */
export const LINEAR_TO_MULAW: Uint8Array = Uint8Array.from({ length: 65536 }, (_, bits) =>
  encodeMulawSample((bits << 16) >> 16),
);
export const LINEAR_TO_ALAW: Uint8Array = Uint8Array.from({ length: 65536 }, (_, bits) =>
  encodeAlawSample((bits << 16) >> 16),
);

/** Transcoding tables: decoding and encoding in one step. */
export const MULAW_TO_ALAW: Uint8Array = Uint8Array.from(MULAW_TO_LINEAR, (sample) => encodeAlawSample(sample));
export const ALAW_TO_MULAW: Uint8Array = Uint8Array.from(ALAW_TO_LINEAR, (sample) => encodeMulawSample(sample));

/** Octet of silence: 0 in mu-law, +8 of 32768 in A-law, which has no zero. */
export const MULAW_SILENCE = 0xff;
export const ALAW_SILENCE = 0xd5;

export type G711Codec = 'PCMU' | 'PCMA';

/** Encodes at most `maxSamples` samples into `octets`, starting at `at`. Returns the number of samples. */
export function encodeG711(
  codec: G711Codec,
  samples: Int16Array,
  octets: Uint8Array,
  at = 0,
  maxSamples: number = samples.length,
): number {
  const table = codec === 'PCMU' ? LINEAR_TO_MULAW : LINEAR_TO_ALAW;
  const count = Math.min(maxSamples, samples.length, octets.length - at);
  for (let i = 0; i < count; i++) octets[at + i] = table[samples[i]! & 0xffff]!;
  return count;
}

/** Decodes octets `from`..`to` into `samples`. Returns the number of samples. */
export function decodeG711(
  codec: G711Codec,
  octets: Uint8Array,
  samples: Int16Array,
  from = 0,
  to: number = octets.length,
): number {
  const table = codec === 'PCMU' ? MULAW_TO_LINEAR : ALAW_TO_LINEAR;
  const count = Math.min(samples.length, to - from);
  for (let i = 0; i < count; i++) samples[i] = table[octets[from + i]!]!;
  return count;
}

/** Octet table from one law to the other; null if they are equal. */
export function transcodingTable(from: G711Codec, to: G711Codec): Uint8Array | null {
  if (from === to) return null;
  return from === 'PCMU' ? MULAW_TO_ALAW : ALAW_TO_MULAW;
}

function decodeMulawOctet(octet: number): number {
  const inverted = ~octet & 0xff;
  const magnitude = ((((inverted & 0x0f) << 3) + MULAW_BIAS) << ((inverted & 0x70) >> 4)) - MULAW_BIAS;
  return (inverted & 0x80) !== 0 ? -magnitude : magnitude;
}

function decodeAlawOctet(octet: number): number {
  const bits = octet ^ 0x55;
  const segment = (bits & 0x70) >> 4;
  const base = ((bits & 0x0f) << 4) + 8;
  const magnitude = segment === 0 ? base : (base + 0x100) << (segment - 1);
  return (bits & 0x80) !== 0 ? magnitude : -magnitude;
}

function encodeMulawSample(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample), 0x7fff - MULAW_BIAS) + MULAW_BIAS;
  const exponent = 31 - Math.clz32(magnitude) - 7;
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~(sign | (exponent << 4) | mantissa) & 0xff;
}

function encodeAlawSample(sample: number): number {
  // 13-bit magnitude; negative values are one's complement so that -1 and 0 share the smallest step.
  const positive = sample >= 0;
  const magnitude = (positive ? sample : -sample - 1) >> 3;
  const segment = magnitude < 32 ? 0 : 31 - Math.clz32(magnitude) - 4;
  const mantissa = (magnitude >> (segment < 2 ? 1 : segment)) & 0x0f;
  return ((segment << 4) | mantissa) ^ (positive ? 0xd5 : 0x55);
}
