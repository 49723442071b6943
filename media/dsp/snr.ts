import { powerToDbov, SILENCE_DBOV } from './level.ts';

/**
 * Running signal-to-noise ratio of a leg, from a histogram of frame levels in 1 dB steps. The noise floor is the tenth
 * percentile; speech is the mean power of frames well above it. Loud music counts as speech: the estimate describes the
 * line.
 */

const BIN_COUNT = -SILENCE_DBOV + 1;
/** Frames this far above the floor are speech. */
const SPEECH_ABOVE_FLOOR_DB = 9;
/** Quieter frames are line noise or echo. */
const QUIETEST_SPEECH_DBOV = -50;
/** Quantisation noise of G.711, the limit for a digitally silent background. */
const FLOOR_LIMIT_DBOV = -72;
const NOISE_PERCENTILE = 0.1;
/** Half a second of speech and of background is required. */
const FEWEST_FRAMES = 25;

export class SnrEstimator {
  readonly #frames = new Uint32Array(BIN_COUNT);
  readonly #power = new Float64Array(BIN_COUNT);
  #frameCount = 0;

  /** Adds the mean power of one frame (`meanPower`, `meanPowerOfG711`). Allocates nothing. */
  addFrame(power: number): void {
    const bin = Math.min(BIN_COUNT - 1, Math.max(0, Math.round(powerToDbov(power)) - SILENCE_DBOV));
    this.#frames[bin] = this.#frames[bin]! + 1;
    this.#power[bin] = this.#power[bin]! + power;
    this.#frameCount += 1;
  }

  /** In dB, at most 60; null until both speech and a pause occurred. */
  estimateDb(): number | null {
    const floorDbov = this.#noiseFloorDbov();
    if (floorDbov === null) return null;
    const speechFromDbov = Math.max(floorDbov + SPEECH_ABOVE_FLOOR_DB, QUIETEST_SPEECH_DBOV);
    let speechFrames = 0;
    let speechPower = 0;
    for (let bin = Math.ceil(speechFromDbov) - SILENCE_DBOV; bin < BIN_COUNT; bin++) {
      speechFrames += this.#frames[bin]!;
      speechPower += this.#power[bin]!;
    }
    if (speechFrames < FEWEST_FRAMES || this.#frameCount - speechFrames < FEWEST_FRAMES) return null;
    const noisePower = 32768 * 32768 * 10 ** (floorDbov / 10);
    const signalPower = Math.max(speechPower / speechFrames - noisePower, noisePower);
    return Math.min(60, 10 * Math.log10(signalPower / noisePower));
  }

  #noiseFloorDbov(): number | null {
    if (this.#frameCount < 2 * FEWEST_FRAMES) return null;
    const target = this.#frameCount * NOISE_PERCENTILE;
    let seen = 0;
    for (let bin = 0; bin < BIN_COUNT; bin++) {
      seen += this.#frames[bin]!;
      if (seen >= target) return Math.max(FLOOR_LIMIT_DBOV, bin + SILENCE_DBOV);
    }
    return null;
  }
}
