/**
 * Mel-frequency cepstra (Davis and Mermelstein 1980): the timbre of a voice, 100 times a second, without its loudness.
 * Limited to the telephone band, so that callers and files are comparable.
 */

export const CEPSTRA = 12;
export const FRAME_MS = 10;

export interface Cepstra {
  /** Concatenated frames of `CEPSTRA` numbers. */
  values: Float64Array;
  /** Level of each frame, in dB with an arbitrary zero. */
  levelsDb: Float64Array;
}

/** Computes cepstra of 16 kHz samples. Frame `i` is centred at `i * FRAME_MS`; there are as many as hops fit. */
export function cepstraOf(samples: Int16Array): Cepstra {
  const frames = Math.floor(samples.length / HOP);
  const values = new Float64Array(frames * CEPSTRA);
  const levelsDb = new Float64Array(frames);
  const real = new Float64Array(FFT_SIZE);
  const imaginary = new Float64Array(FFT_SIZE);
  const logBands = new Float64Array(BANDS);
  for (let frame = 0; frame < frames; frame++) {
    const energy = windowed(samples, frame * HOP - WINDOW_LENGTH / 2, real);
    levelsDb[frame] = 10 * Math.log10(energy + 1);
    imaginary.fill(0);
    transform(real, imaginary);
    for (let band = 0; band < BANDS; band++) logBands[band] = Math.log(bandPower(band, real, imaginary) + 1);
    for (let k = 0; k < CEPSTRA; k++) {
      let sum = 0;
      for (let band = 0; band < BANDS; band++) sum += logBands[band]! * COSINES[k * BANDS + band]!;
      values[frame * CEPSTRA + k] = sum;
    }
  }
  return { values, levelsDb };
}

const SAMPLE_RATE_HZ = 16_000;
const HOP = (SAMPLE_RATE_HZ * FRAME_MS) / 1000;
const WINDOW_LENGTH = 400;
const FFT_SIZE = 512;
const BANDS = 24;
const LOWEST_HZ = 100;
const HIGHEST_HZ = 3_700;
const PRE_EMPHASIS = 0.97;

const WINDOW = Float64Array.from(
  { length: WINDOW_LENGTH },
  (_, index) => 0.54 - 0.46 * Math.cos((2 * Math.PI * index) / (WINDOW_LENGTH - 1)),
);

/** Without the first cosine, which is loudness. */
const COSINES = Float64Array.from({ length: CEPSTRA * BANDS }, (_, index) => {
  const k = Math.floor(index / BANDS) + 1;
  return Math.sqrt(2 / BANDS) * Math.cos((Math.PI * k * ((index % BANDS) + 0.5)) / BANDS);
});

/** Start, peak and end of each band, in bins of the transform. */
const BAND_EDGES = Float64Array.from({ length: BANDS + 2 }, (_, index) => {
  const mel = melOf(LOWEST_HZ) + ((melOf(HIGHEST_HZ) - melOf(LOWEST_HZ)) * index) / (BANDS + 1);
  return ((700 * (10 ** (mel / 2595) - 1)) / SAMPLE_RATE_HZ) * FFT_SIZE;
});

const FIRST_BINS = Uint16Array.from({ length: BANDS }, (_, band) => Math.ceil(BAND_EDGES[band]!));
/** Triangular weights over the bins of each band. */
const BAND_WEIGHTS = Array.from({ length: BANDS }, (_, band) => {
  const [from = 0, peak = 0, to = 0] = BAND_EDGES.subarray(band, band + 3);
  const firstBin = FIRST_BINS[band]!;
  return Float64Array.from({ length: Math.ceil(to) - firstBin }, (_, index) => {
    const bin = firstBin + index;
    return bin < peak ? (bin - from) / (peak - from) : (to - bin) / (to - peak);
  });
});

function melOf(hz: number): number {
  return 2595 * Math.log10(1 + hz / 700);
}

/** Fills `real` with one window of pre-emphasised samples, zero beyond the ends; returns their energy. */
function windowed(samples: Int16Array, from: number, real: Float64Array): number {
  real.fill(0);
  let energy = 0;
  for (let index = 0; index < WINDOW_LENGTH; index++) {
    const at = from + index;
    if (at < 0 || at >= samples.length) continue;
    const sample = samples[at]!;
    energy += sample * sample;
    real[index] = WINDOW[index]! * (sample - PRE_EMPHASIS * (at > 0 ? samples[at - 1]! : 0));
  }
  return energy / WINDOW_LENGTH;
}

function bandPower(band: number, real: Float64Array, imaginary: Float64Array): number {
  const weights = BAND_WEIGHTS[band]!;
  const firstBin = FIRST_BINS[band]!;
  let power = 0;
  for (let index = 0; index < weights.length; index++) {
    const re = real[firstBin + index]!;
    const im = imaginary[firstBin + index]!;
    power += weights[index]! * (re * re + im * im);
  }
  return power;
}

const REVERSED = Uint16Array.from({ length: FFT_SIZE }, (_, index) => {
  let reversed = 0;
  for (let bit = 1; bit < FFT_SIZE; bit <<= 1) reversed = (reversed << 1) | (index & bit ? 1 : 0);
  return reversed;
});
const TWIDDLE_COS = Float64Array.from({ length: FFT_SIZE / 2 }, (_, index) =>
  Math.cos((2 * Math.PI * index) / FFT_SIZE),
);
const TWIDDLE_SIN = Float64Array.from(
  { length: FFT_SIZE / 2 },
  (_, index) => -Math.sin((2 * Math.PI * index) / FFT_SIZE),
);

/** Radix-2 Fourier transform in place (Cooley and Tukey 1965). */
function transform(real: Float64Array, imaginary: Float64Array): void {
  for (let index = 0; index < FFT_SIZE; index++) {
    const other = REVERSED[index]!;
    if (other > index) {
      swap(real, index, other);
      swap(imaginary, index, other);
    }
  }
  for (let half = 1; half < FFT_SIZE; half *= 2) {
    const stride = FFT_SIZE / (2 * half);
    for (let start = 0; start < FFT_SIZE; start += 2 * half) {
      for (let offset = 0; offset < half; offset++) {
        const cos = TWIDDLE_COS[offset * stride]!;
        const sin = TWIDDLE_SIN[offset * stride]!;
        const upper = start + offset;
        const lower = upper + half;
        const turnedReal = real[lower]! * cos - imaginary[lower]! * sin;
        const turnedImaginary = real[lower]! * sin + imaginary[lower]! * cos;
        real[lower] = real[upper]! - turnedReal;
        imaginary[lower] = imaginary[upper]! - turnedImaginary;
        real[upper] = real[upper]! + turnedReal;
        imaginary[upper] = imaginary[upper]! + turnedImaginary;
      }
    }
  }
}

function swap(values: Float64Array, a: number, b: number): void {
  const value = values[a]!;
  values[a] = values[b]!;
  values[b] = value;
}
