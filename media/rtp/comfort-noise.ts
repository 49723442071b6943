import { MOST_REFLECTION_COEFFICIENTS, type NoiseShape } from '../dsp/noise-generator.ts';

/**
 * Comfort noise payloads (RFC 3389 §3): a level, then the spectrum as quantised reflection coefficients of an all-pole
 * filter. Input may be hostile. Only `emptyComfortNoise` allocates.
 */

/** Static payload type of comfort noise at 8 kHz (RFC 3551 §6). */
export const COMFORT_NOISE_PAYLOAD_TYPE = 13;
export function emptyComfortNoise(): NoiseShape {
  return { levelDbov: -127, order: 0, reflection: new Float64Array(MOST_REFLECTION_COEFFICIENTS) };
}

/** Parses a payload into `noise`. False for an empty one, which leaves `noise` unchanged. */
export function parseComfortNoise(octets: Uint8Array, from: number, payloadBytes: number, noise: NoiseShape): boolean {
  if (payloadBytes < 1) return false;
  noise.levelDbov = 0 - (octets[from]! & 0x7f);
  noise.order = Math.min(MOST_REFLECTION_COEFFICIENTS, payloadBytes - 1);
  for (let i = 0; i < noise.order; i++) {
    // 255 is not defined by the RFC and would be an unstable filter.
    noise.reflection[i] = (258 * (Math.min(254, octets[from + 1 + i]!) - 127)) / 32_768;
  }
  return true;
}
