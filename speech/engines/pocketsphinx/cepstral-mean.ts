import { RealFft } from '../../../media/dsp/fft.ts';
import { cornerHz, dctOf, dot, type FrontEnd } from './front-end.ts';

/**
 * The mean of an utterance's cepstra. The decoder subtracts it to remove loudness, room and line. By default, the
 * decoder uses the mean of earlier audio, perhaps of another speaker.
 */
export class CepstralMean {
  readonly #frontEnd: FrontEnd;
  readonly #filters: readonly Filter[];
  readonly #dct: readonly Float64Array[];
  readonly #sums: Float64Array;
  readonly #logs: Float64Array;
  readonly #fft = new RealFft(FFT_POINTS);
  readonly #frame = new Float32Array(FFT_POINTS);
  readonly #powers = new Float32Array(FFT_POINTS / 2 + 1);
  #frames = 0;
  /** The sample before the first of `#rest`, and samples of an incomplete frame. */
  #previous = 0;
  #rest = new Int16Array(0);

  constructor(frontEnd: FrontEnd) {
    this.#frontEnd = frontEnd;
    this.#filters = filterBankOf(frontEnd);
    this.#dct = dctOf(frontEnd);
    this.#sums = new Float64Array(frontEnd.cepstra);
    this.#logs = new Float64Array(frontEnd.filters);
  }

  add(samples: Int16Array): void {
    const all = new Int16Array(this.#rest.length + samples.length);
    all.set(this.#rest);
    all.set(samples, this.#rest.length);
    let start = 0;
    for (; start + FRAME_SAMPLES <= all.length; start += SHIFT_SAMPLES) {
      this.#addFrame(all, start);
      this.#previous = all[start + SHIFT_SAMPLES - 1]!;
    }
    this.#rest = all.slice(start);
  }

  mean(): Float32Array {
    const { assumedMean } = this.#frontEnd;
    return Float32Array.from(
      this.#sums,
      (sum, index) => (sum + assumedMean[index]! * ASSUMED_FRAMES) / (this.#frames + ASSUMED_FRAMES),
    );
  }

  #addFrame(samples: Int16Array, start: number): void {
    const frame = this.#frame.fill(0);
    let previous = start === 0 ? this.#previous : samples[start - 1]!;
    for (let index = 0; index < FRAME_SAMPLES; index++) {
      const sample = samples[start + index]!;
      frame[index] = (sample - PRE_EMPHASIS * previous) * HAMMING[index]!;
      previous = sample;
    }
    this.#fft.powers(frame, this.#powers);
    for (const [index, { firstBin, weights }] of this.#filters.entries()) {
      let energy = LOG_FLOOR;
      for (let offset = 0; offset < weights.length; offset++) {
        energy += weights[offset]! * this.#powers[firstBin + offset]!;
      }
      this.#logs[index] = Math.log(energy);
    }
    // The decoder also excludes frames without energy from the mean.
    if (dot(this.#dct[0]!, this.#logs) < 0) return;
    for (const [order, row] of this.#dct.entries()) this.#sums[order]! += dot(row, this.#logs);
    this.#frames += 1;
  }
}

const ASSUMED_FRAMES = 10;
const RATE_HZ = 16_000;
const FRAME_SAMPLES = 410;
const SHIFT_SAMPLES = 160;
const FFT_POINTS = 512;
const PRE_EMPHASIS = 0.97;
const LOG_FLOOR = 1e-4;

const HAMMING = Float64Array.from(
  { length: FRAME_SAMPLES },
  (_, index) => 0.54 - 0.46 * Math.cos((2 * Math.PI * index) / (FRAME_SAMPLES - 1)),
);

interface Filter {
  firstBin: number;
  weights: Float64Array;
}

/** Corner frequencies are rounded to bins. */
function filterBankOf(frontEnd: FrontEnd): Filter[] {
  const binHz = RATE_HZ / FFT_POINTS;
  const roundedHz = (corner: number): number => Math.floor(cornerHz(frontEnd, corner) / binHz + 0.5) * binHz;
  return Array.from({ length: frontEnd.filters }, (_, index) => {
    const [leftHz, centreHz, rightHz] = [roundedHz(index), roundedHz(index + 1), roundedHz(index + 2)];
    const firstBin = Math.ceil(leftHz / binHz);
    const weights = Float64Array.from({ length: Math.floor(rightHz / binHz) - firstBin + 1 }, (_, offset) => {
      const hz = (firstBin + offset) * binHz;
      const slope = Math.min((hz - leftHz) / (centreHz - leftHz), (rightHz - hz) / (rightHz - centreHz));
      return (slope * 2) / (rightHz - leftHz);
    });
    return { firstBin, weights };
  });
}
