import { powerToDbov, SILENCE_DBOV } from './level.ts';

/**
 * Signal-to-noise ratio with a voice detector (`snr.ts` needs none). The background is the median of windows without
 * speech or tone, so a click or breath does not raise it.
 */

const BINS_PER_DB = 2;
const BIN_COUNT = -SILENCE_DBOV * BINS_PER_DB + 1;
/** Quantisation noise of G.711, the limit for a digitally silent background. */
const BACKGROUND_LIMIT_DBOV = -72;
const BEST_SNR_DB = 60;
const WORST_SNR_DB = -20;
const FULL_SCALE_POWER = 32768 * 32768;

/** Histogram of window levels. `fade` reduces the weight of the past. */
export class BackgroundLevel {
  readonly #weights = new Float64Array(BIN_COUNT);
  #weight = 0;

  /** Adds the mean power of one window. Allocates nothing. */
  add(power: number): void {
    const bin = Math.min(BIN_COUNT - 1, Math.max(0, Math.round((powerToDbov(power) - SILENCE_DBOV) * BINS_PER_DB)));
    this.#weights[bin] = this.#weights[bin]! + 1;
    this.#weight += 1;
  }

  fade(factor: number): void {
    for (let bin = 0; bin < BIN_COUNT; bin++) this.#weights[bin] = this.#weights[bin]! * factor;
    this.#weight *= factor;
  }

  /** Median power; null below a weight of `fewestWindows`. */
  medianPower(fewestWindows: number): number | null {
    if (this.#weight < fewestWindows) return null;
    let seen = 0;
    let bin = 0;
    for (; bin < BIN_COUNT - 1; bin++) {
      seen += this.#weights[bin]!;
      if (seen >= this.#weight / 2) break;
    }
    return FULL_SCALE_POWER * 10 ** ((SILENCE_DBOV + bin / BINS_PER_DB) / 10);
  }
}

/** In dB, between -20 and 60. The mean power of speech includes the background. */
export function speechSnrDb(speechPower: number, backgroundPower: number): number {
  const background = Math.max(backgroundPower, FULL_SCALE_POWER * 10 ** (BACKGROUND_LIMIT_DBOV / 10));
  const ratio = Math.max((speechPower - background) / background, 10 ** (WORST_SNR_DB / 10));
  return Math.min(BEST_SNR_DB, 10 * Math.log10(ratio));
}
