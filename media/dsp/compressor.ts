import { FULL_SCALE_POWER } from './level.ts';

export interface CompressorOptions {
  sampleRateHz: number;
  /** Level above which it attenuates, averaged over some milliseconds. */
  thresholdDbov: number;
  /** Input dB above the threshold per output dB. */
  ratio: number;
  /** Range around the threshold, in dB, over which the ratio sets in. */
  kneeDb: number;
  attackMs: number;
  releaseMs: number;
  makeUpDb: number;
}

/** Reduces the difference between loud and soft sounds. Works without delay on samples of 16-bit scale. */
export class Compressor {
  readonly #options: CompressorOptions;
  readonly #attack: number;
  readonly #release: number;
  #power = 0;
  #gain: number;
  #step = 0;
  #untilNext = 0;

  constructor(options: CompressorOptions) {
    this.#options = options;
    this.#attack = 1 - Math.exp(-1000 / (options.attackMs * options.sampleRateHz));
    this.#release = 1 - Math.exp(-1000 / (options.releaseMs * options.sampleRateHz));
    this.#gain = this.#gainFor(0);
  }

  /** Processes the first `count` in place. Allocates nothing. */
  process(samples: Float32Array, count: number): void {
    for (let i = 0; i < count; i++) {
      const sample = samples[i]!;
      const excess = sample * sample - this.#power;
      this.#power += excess * (excess > 0 ? this.#attack : this.#release);
      if (this.#untilNext === 0) {
        this.#step = (this.#gainFor(this.#power) - this.#gain) / SAMPLES_PER_GAIN;
        this.#untilNext = SAMPLES_PER_GAIN;
      }
      this.#untilNext -= 1;
      this.#gain += this.#step;
      samples[i] = sample * this.#gain;
    }
  }

  #gainFor(power: number): number {
    const { thresholdDbov, ratio, kneeDb, makeUpDb } = this.#options;
    const overDb = 10 * Math.log10(power / FULL_SCALE_POWER + 1e-12) - thresholdDbov;
    const heldBack = 1 - 1 / ratio;
    let downDb = 0;
    if (overDb > kneeDb / 2) downDb = heldBack * overDb;
    else if (overDb > -kneeDb / 2) downDb = (heldBack * (overDb + kneeDb / 2) ** 2) / (2 * kneeDb);
    return 10 ** ((makeUpDb - downDb) / 20);
  }
}

/** The gain is interpolated linearly in between. */
const SAMPLES_PER_GAIN = 16;
