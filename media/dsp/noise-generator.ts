import { FULL_SCALE_POWER } from './level.ts';

/**
 * Generates comfort noise of a given level and spectrum: white noise through an all-pole lattice of reflection
 * coefficients.
 */

/** A receiver may ignore coefficients of higher order (RFC 3389 §3.2). */
export const MOST_REFLECTION_COEFFICIENTS = 12;
/** With larger ones, a filter rings for longer than the noise lasts. */
const LARGEST_COEFFICIENT = 0.95;
/** The level is reached within about 15 ms, so that neither start nor change clicks. */
const APPROACH = 0.02;
/** A uniform random number in -1..1 has a third of the power of its peak. */
const UNIFORM_TO_UNIT_POWER = Math.sqrt(3);

/** May be reused for every description. */
export interface NoiseShape {
  /** 0 to -127. */
  levelDbov: number;
  order: number;
  /** In -1..1; the first is positive where neighbouring samples differ in sign (k1 is -R(1)/R(0)). */
  readonly reflection: Float64Array;
}

export class NoiseGenerator {
  readonly #reflection = new Float64Array(MOST_REFLECTION_COEFFICIENTS);
  readonly #backward = new Float64Array(MOST_REFLECTION_COEFFICIENTS + 1);
  #order = 0;
  /** Root mean square. */
  #amplitude = 0;
  #targetAmplitude = 0;
  /** Filter input for noise of amplitude 1. Changes together with the filter to avoid overshoot. */
  #input = UNIFORM_TO_UNIT_POWER;
  #random: number;

  /** @param seed makes the noise repeatable; not 0. */
  constructor(seed = 0x9e37_79b9) {
    this.#random = seed | 0;
  }

  /** Sets level and spectrum. Allocates nothing. */
  describe(noise: NoiseShape): void {
    let isOtherFilter = this.#order !== noise.order;
    this.#order = Math.min(MOST_REFLECTION_COEFFICIENTS, noise.order);
    let inputPower = 1;
    for (let i = 0; i < this.#order; i++) {
      const coefficient = Math.max(-LARGEST_COEFFICIENT, Math.min(LARGEST_COEFFICIENT, noise.reflection[i]!));
      isOtherFilter ||= this.#reflection[i] !== coefficient;
      this.#reflection[i] = coefficient;
      // The lattice amplifies by the inverse of that product.
      inputPower *= 1 - coefficient * coefficient;
    }
    // The state of one filter may ring loudly in another.
    if (isOtherFilter) this.#backward.fill(0);
    this.#input = UNIFORM_TO_UNIT_POWER * Math.sqrt(inputPower);
    this.#targetAmplitude = Math.sqrt(FULL_SCALE_POWER * 10 ** (noise.levelDbov / 10));
  }

  /** Starts the next noise from silence. */
  reset(): void {
    this.#amplitude = 0;
    this.#backward.fill(0);
  }

  /** Fills samples `from`..`to`. Allocates nothing. */
  generate(samples: Int16Array, from: number, to: number): void {
    const backward = this.#backward;
    const reflection = this.#reflection;
    let amplitude = this.#amplitude;
    for (let i = from; i < to; i++) {
      amplitude += APPROACH * (this.#targetAmplitude - amplitude);
      let forward = amplitude * this.#input * this.#uniform();
      for (let stage = this.#order - 1; stage >= 0; stage--) {
        const coefficient = reflection[stage]!;
        forward -= coefficient * backward[stage]!;
        backward[stage + 1] = backward[stage]! + coefficient * forward;
      }
      backward[0] = forward;
      samples[i] = Math.max(-32_768, Math.min(32_767, Math.round(forward)));
    }
    this.#amplitude = amplitude;
  }

  /** 32-bit xorshift, in -1..1. */
  #uniform(): number {
    let x = this.#random;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#random = x;
    return x / 2 ** 31;
  }
}
