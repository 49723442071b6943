import { ALAW_TO_LINEAR, type G711Codec, MULAW_TO_LINEAR } from '../codecs/g711.ts';

/** Levels in dBov: 0 is the power of a full-scale square wave (RFC 6464 §3), so a full-scale sine is -3.01. */

export const SILENCE_DBOV = -96;

export const FULL_SCALE_POWER = 32768 * 32768;

const MULAW_POWER = Float64Array.from(MULAW_TO_LINEAR, (sample) => sample * sample);
const ALAW_POWER = Float64Array.from(ALAW_TO_LINEAR, (sample) => sample * sample);

/** Mean square of the first `count` linear samples, in 16-bit steps squared. */
export function meanPower(samples: Int16Array, count: number = samples.length): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += samples[i]! * samples[i]!;
  return count === 0 ? 0 : sum / count;
}

/** Mean square of G.711 octets `from`..`to`, without decoding them. */
export function meanPowerOfG711(codec: G711Codec, octets: Uint8Array, from: number, to: number): number {
  const table = codec === 'PCMU' ? MULAW_POWER : ALAW_POWER;
  let sum = 0;
  for (let i = from; i < to; i++) sum += table[octets[i]!]!;
  return to > from ? sum / (to - from) : 0;
}

export function powerToDbov(power: number): number {
  return power <= 0 ? SILENCE_DBOV : Math.max(SILENCE_DBOV, 10 * Math.log10(power / FULL_SCALE_POWER));
}

export function levelDbov(samples: Int16Array): number {
  return powerToDbov(meanPower(samples));
}
