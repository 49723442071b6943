import { RealFft } from '../../../media/dsp/fft.ts';

/**
 * The mean of an utterance's mel-frequency cepstra, as PocketSphinx computes them for its `en-us` model (feat.params:
 * 25 filters from 130 to 6,800 Hz, orthonormal DCT, lifter 22; frames of 410 samples every 160). The decoder subtracts
 * it, which takes the loudness, the room and the telephone out of what it hears, but left alone it takes the mean of
 * what it heard before, of another speaker perhaps.
 */
export class CepstralMean {
  readonly #sums = new Float64Array(CEPSTRA);
  readonly #fft = new RealFft(FFT_POINTS);
  readonly #frame = new Float32Array(FFT_POINTS);
  readonly #powers = new Float32Array(FFT_POINTS / 2 + 1);
  #frames = 0;
  /** The sample before the first of `#rest`, and samples whose frame is not yet whole. */
  #previous = 0;
  #rest = new Int16Array(0);

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

  /** What is assumed counts as much as `ASSUMED_FRAMES` of what was heard. */
  mean(): Float32Array {
    return Float32Array.from(
      this.#sums,
      (sum, index) => (sum + ASSUMED_MEAN[index]! * ASSUMED_FRAMES) / (this.#frames + ASSUMED_FRAMES),
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
    const cepstra = cepstraOf(this.#powers);
    // The decoder leaves frames without energy as they are, and so out of the mean.
    if (cepstra[0]! < 0) return;
    for (let index = 0; index < CEPSTRA; index++) this.#sums[index]! += cepstra[index]!;
    this.#frames += 1;
  }
}

export const CEPSTRA = 13;
/** The model's `-cmninit`: of the speech that it was trained on. */
export const ASSUMED_MEAN: readonly number[] = [
  41, -5.29, -0.12, 5.09, 2.48, -4.07, -1.37, -1.78, -5.08, -2.05, -6.45, -1.42, 1.17,
];
const ASSUMED_FRAMES = 10;

const RATE_HZ = 16_000;
const FRAME_SAMPLES = 410;
const SHIFT_SAMPLES = 160;
const FFT_POINTS = 512;
const FILTERS = 25;
const LOWEST_HZ = 130;
const HIGHEST_HZ = 6800;
const LIFTER = 22;
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

/** Triangles of unit area, evenly spaced in mel, with corners on bins. */
const FILTER_BANK: readonly Filter[] = Array.from({ length: FILTERS }, (_, index) => {
  const binHz = RATE_HZ / FFT_POINTS;
  const stepMel = (melOf(HIGHEST_HZ) - melOf(LOWEST_HZ)) / (FILTERS + 1);
  const cornerHz = (corner: number): number => {
    const hz = 700 * (10 ** ((melOf(LOWEST_HZ) + (index + corner) * stepMel) / 2595) - 1);
    return Math.floor(hz / binHz + 0.5) * binHz;
  };
  const [leftHz, centreHz, rightHz] = [cornerHz(0), cornerHz(1), cornerHz(2)];
  const firstBin = Math.ceil(leftHz / binHz);
  const weights = Float64Array.from({ length: Math.floor(rightHz / binHz) - firstBin + 1 }, (_, offset) => {
    const hz = (firstBin + offset) * binHz;
    const slope = Math.min((hz - leftHz) / (centreHz - leftHz), (rightHz - hz) / (rightHz - centreHz));
    return (slope * 2) / (rightHz - leftHz);
  });
  return { firstBin, weights };
});

const DCT: readonly Float64Array[] = Array.from({ length: CEPSTRA }, (_, order) =>
  Float64Array.from({ length: FILTERS }, (_, filter) => {
    const norm = Math.sqrt((order === 0 ? 1 : 2) / FILTERS);
    const lift = 1 + (LIFTER / 2) * Math.sin((order * Math.PI) / LIFTER);
    return norm * lift * Math.cos((Math.PI / FILTERS) * order * (filter + 0.5));
  }),
);

function melOf(hz: number): number {
  return 2595 * Math.log10(1 + hz / 700);
}

function cepstraOf(powers: Float32Array): number[] {
  const logs = FILTER_BANK.map(({ firstBin, weights }) => {
    let energy = 0;
    for (let offset = 0; offset < weights.length; offset++) {
      energy += weights[offset]! * powers[firstBin + offset]!;
    }
    return Math.log(energy + LOG_FLOOR);
  });
  return DCT.map((row) => logs.reduce((sum, log, filter) => sum + log * row[filter]!, 0));
}
