import { Biquad, type BiquadCoefficients, gainDbAt, peaking } from './biquad.ts';

/** Width of a third-octave band (IEC 61260-1) on either side of its centre. */
const HALF_BAND = 2 ** (1 / 6);
/** Share of the sample rate. Bands centred above it are unchanged. */
const HIGHEST_CENTRE = 0.45;
/** Slightly wider than a band, so that neighbours join smoothly. */
const FILTER_OCTAVES = 0.4;
const POINTS_PER_BAND = 9;
const ROUNDS = 12;
/** Very different gains of neighbouring bands cannot all be reached, so filters and steps are limited. */
const MOST_FILTER_DB = 20;
const DAMPING = 0.7;

/**
 * Third-octave equaliser: one filter per band in series, without delay. White noise in each band changes by the
 * requested gain, within 1 dB where neighbours differ by 4 dB or less. All gains are solved together, because filters
 * overlap (after Välimäki and Liski, "Accurate cascade graphic equalizer", 2017, but for band powers). An FIR filter
 * would need a tenth of a second for the lowest bands.
 */
export class GraphicEqualiser {
  readonly #filters: readonly Biquad[];

  constructor(options: GraphicEqualiserOptions) {
    this.#filters = designGraphicEqualiser(options).map((coefficients) => new Biquad(coefficients));
  }

  /** Filters the first `count` in place. Allocates nothing. */
  process(samples: Float32Array, count: number): void {
    for (const filter of this.#filters) filter.process(samples, count);
  }
}

export interface GraphicEqualiserOptions {
  centresHz: readonly number[];
  gainsDb: readonly number[];
  sampleRateHz: number;
}

export function designGraphicEqualiser(options: GraphicEqualiserOptions): BiquadCoefficients[] {
  const { sampleRateHz } = options;
  const bands = options.centresHz.filter((centre) => centre <= HIGHEST_CENTRE * sampleRateHz);
  const filters = (gains: readonly number[]) =>
    bands.map((centreHz, band) => peaking({ centreHz, octaves: FILTER_OCTAVES, gainDb: gains[band]!, sampleRateHz }));
  const wanted = bands.map((_, band) => options.gainsDb[band] ?? 0);
  // Effect of 1 dB of each filter on each band.
  const prototypes = filters(bands.map(() => 1));
  const influence = bands.map((band) => prototypes.map((filter) => bandGainDb([filter], band, sampleRateHz)));
  let gains: number[] = bands.map(() => 0);
  for (let round = 0; round < ROUNDS; round++) {
    const made = filters(gains);
    const missing = bands.map((band, index) => wanted[index]! - bandGainDb(made, band, sampleRateHz));
    const change = solve(influence, missing);
    gains = gains.map((gain, index) =>
      Math.max(-MOST_FILTER_DB, Math.min(MOST_FILTER_DB, gain + DAMPING * change[index]!)),
    );
  }
  return filters(gains);
}

/** Gain for white noise in the band around the centre. */
function bandGainDb(filters: readonly BiquadCoefficients[], centreHz: number, sampleRateHz: number): number {
  const lowest = centreHz / HALF_BAND;
  const highest = Math.min(centreHz * HALF_BAND, sampleRateHz / 2);
  let power = 0;
  for (let point = 0; point < POINTS_PER_BAND; point++) {
    const hz = lowest + ((highest - lowest) * (point + 0.5)) / POINTS_PER_BAND;
    let gainDb = 0;
    for (const filter of filters) gainDb += gainDbAt(filter, hz, sampleRateHz);
    power += 10 ** (gainDb / 10);
  }
  return 10 * Math.log10(power / POINTS_PER_BAND);
}

/** Solves linear equations by Gaussian elimination, for a matrix with its largest values on the diagonal. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] {
  const size = right.length;
  const rows = matrix.map((row, index) => [...row, right[index]!]);
  for (let pivot = 0; pivot < size; pivot++) {
    const from = rows[pivot]!;
    for (let below = pivot + 1; below < size; below++) {
      const row = rows[below]!;
      const factor = row[pivot]! / from[pivot]!;
      for (let column = pivot; column <= size; column++) row[column] = row[column]! - factor * from[column]!;
    }
  }
  const solution = new Array<number>(size).fill(0);
  for (let index = size - 1; index >= 0; index--) {
    const row = rows[index]!;
    let rest = row[size]!;
    for (let column = index + 1; column < size; column++) rest -= row[column]! * solution[column]!;
    solution[index] = rest / row[index]!;
  }
  return solution;
}
