/**
 * Background level: minimum of smoothed power over the last seconds (after R. Martin, "Noise Power Spectral Density
 * Estimation Based on Optimal Smoothing and Minimum Statistics", 2001).
 */

const FULL_SCALE_POWER = 32768 * 32768;
/** -64 dBov, a few of the smallest steps of mu-law. Weaker sound is ignored. */
export const SILENCE_POWER = FULL_SCALE_POWER * 10 ** (-64 / 10);
/** Upper limit of the floor until the first pause. */
const FIRST_FLOOR_LIMIT = FULL_SCALE_POWER * 10 ** (-50 / 10);
const LEARNING_WINDOWS = 64;
/** Eight stretches of about a second. */
const STRETCHES = 8;
const STRETCH_WINDOWS = 32;
const SMOOTHING = 0.7;
/** Corrects the minimum, which is below the mean. */
const BIAS = 1.6;
/** 3 dB. */
const MARGIN = 2;

export class NoiseFloor {
  readonly #minima = new Float64Array(STRETCHES).fill(Number.POSITIVE_INFINITY);
  #stretch = 0;
  #windowsInStretch = 0;
  #windows = 0;
  #smoothed = 0;

  /** Adds the mean power of the next window. Returns whether it exceeds the background. Allocates nothing. */
  rises(power: number): boolean {
    this.#learn(power);
    return power > Math.max(SILENCE_POWER, this.power * MARGIN);
  }

  get power(): number {
    let least = Number.POSITIVE_INFINITY;
    for (let stretch = 0; stretch < STRETCHES; stretch++) least = Math.min(least, this.#minima[stretch]!);
    const floor = least * BIAS;
    return this.#windows < LEARNING_WINDOWS ? Math.min(floor, FIRST_FLOOR_LIMIT) : floor;
  }

  #learn(power: number): void {
    this.#smoothed = this.#windows === 0 ? power : SMOOTHING * this.#smoothed + (1 - SMOOTHING) * power;
    this.#windows += 1;
    this.#minima[this.#stretch] = Math.min(this.#minima[this.#stretch]!, this.#smoothed);
    this.#windowsInStretch += 1;
    if (this.#windowsInStretch < STRETCH_WINDOWS) return;
    this.#windowsInStretch = 0;
    this.#stretch = (this.#stretch + 1) % STRETCHES;
    this.#minima[this.#stretch] = Number.POSITIVE_INFINITY;
  }
}
