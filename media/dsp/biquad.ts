/**
 * Second-order filters as in Robert Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter
 * coefficients".
 */
export interface BiquadCoefficients {
  b0: number;
  b1: number;
  b2: number;
  a1: number;
  a2: number;
}

/** Butterworth high-pass: -3 dB at the corner, 12 dB an octave below it. */
export function highPass(cornerHz: number, sampleRateHz: number): BiquadCoefficients {
  const omega = (2 * Math.PI * cornerHz) / sampleRateHz;
  const alpha = Math.sin(omega) * Math.SQRT1_2;
  const cosine = Math.cos(omega);
  const a0 = 1 + alpha;
  return {
    b0: (1 + cosine) / 2 / a0,
    b1: -(1 + cosine) / a0,
    b2: (1 + cosine) / 2 / a0,
    a1: (-2 * cosine) / a0,
    a2: (1 - alpha) / a0,
  };
}

/** Raises or lowers the range around the centre. Half of the gain, in dB, remains at `octaves` / 2. */
export function peaking(options: {
  centreHz: number;
  octaves: number;
  gainDb: number;
  sampleRateHz: number;
}): BiquadCoefficients {
  const { centreHz, octaves, gainDb, sampleRateHz } = options;
  const omega = (2 * Math.PI * centreHz) / sampleRateHz;
  const sine = Math.sin(omega);
  const alpha = sine * Math.sinh(((Math.LN2 / 2) * octaves * omega) / sine);
  const amplitude = 10 ** (gainDb / 40);
  const cosine = Math.cos(omega);
  const a0 = 1 + alpha / amplitude;
  return {
    b0: (1 + alpha * amplitude) / a0,
    b1: (-2 * cosine) / a0,
    b2: (1 - alpha * amplitude) / a0,
    a1: (-2 * cosine) / a0,
    a2: (1 - alpha / amplitude) / a0,
  };
}

export function gainDbAt(filter: BiquadCoefficients, hz: number, sampleRateHz: number): number {
  const omega = (2 * Math.PI * hz) / sampleRateHz;
  const cosine = Math.cos(omega);
  const cosine2 = Math.cos(2 * omega);
  const { b0, b1, b2, a1, a2 } = filter;
  const above = b0 * b0 + b1 * b1 + b2 * b2 + 2 * (b0 * b1 + b1 * b2) * cosine + 2 * b0 * b2 * cosine2;
  const below = 1 + a1 * a1 + a2 * a2 + 2 * (a1 + a1 * a2) * cosine + 2 * a2 * cosine2;
  return 10 * Math.log10(above / below);
}

export class Biquad {
  readonly #coefficients: BiquadCoefficients;
  #first = 0;
  #second = 0;

  constructor(coefficients: BiquadCoefficients) {
    this.#coefficients = coefficients;
  }

  /** Filters the first `count` in place, without delay. Allocates nothing. */
  process(samples: Float32Array, count: number): void {
    const { b0, b1, b2, a1, a2 } = this.#coefficients;
    let first = this.#first;
    let second = this.#second;
    for (let i = 0; i < count; i++) {
      const input = samples[i]!;
      const sum = b0 * input + first;
      // Prevents slow denormal numbers after the last sound.
      const output = sum < SMALLEST && sum > -SMALLEST ? 0 : sum;
      first = b1 * input - a1 * output + second;
      second = b2 * input - a2 * output;
      samples[i] = output;
    }
    this.#first = first;
    this.#second = second;
  }
}

const SMALLEST = 1e-20;
