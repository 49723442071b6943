/**
 * Streaming conversion between sample rates by a polyphase filter: a sinc of 32 zero crossings on either side under a
 * Kaiser window. Output sample n lies exactly at time n of the output rate, so no delay has to be remembered. How the
 * input is cut into blocks does not change a bit of the output.
 */

/** Zero crossings of the sinc on either side. */
const ZERO_CROSSINGS = 32;
/** Kaiser's beta for a stop band below -110 dB. */
const KAISER_BETA = 11.2;
/**
 * Middle of the transition, as part of the lower of the two rates. Flat up to 0.425 of it (3.4 kHz of a telephone's
 * 8 kHz, 6.8 kHz of 16 kHz, where the features of recognisers end) and shut from 0.54. What folds over in between
 * stays above 0.475.
 */
const CUTOFF = 0.475;
/** Filters of ratios with larger tables are not kept: odd rates are rare and their tables big. */
const MOST_CACHED_COEFFICIENTS = 1 << 17;

export class Resampler {
  readonly inputRateHz: number;
  readonly outputRateHz: number;
  readonly #filter: PolyphaseFilter;
  /** The last inputs that outputs still need, twice the filter's length or more. */
  #history: Float32Array;
  #historyLength = 0;
  /** Of the next output: where its first tap lies in the history, and its phase. */
  #position = 0;
  #phase = 0;

  /** @throws RangeError for rates that are no positive integers */
  constructor(inputRateHz: number, outputRateHz: number) {
    this.inputRateHz = inputRateHz;
    this.outputRateHz = outputRateHz;
    this.#filter = polyphaseFilter(inputRateHz, outputRateHz);
    this.#history = new Float32Array(2 * this.#filter.taps);
    this.reset();
  }

  /** The most samples that so many inputs can give. */
  outputBound(inputSamples: number): number {
    const { up, down } = this.#filter;
    return Math.ceil(((inputSamples + this.#filter.taps) * up) / down) + 1;
  }

  /** Converts the first `count` samples of `input`; returns how many were written. Allocates only to grow. */
  process(input: Float32Array, count: number, output: Float32Array): number {
    this.#append(input, count);
    const { up, down, taps, coefficients } = this.#filter;
    const history = this.#history;
    let position = this.#position;
    let phase = this.#phase;
    let written = 0;
    for (; position + taps <= this.#historyLength; written++) {
      output[written] = dotProduct(history, position, coefficients, phase * taps, taps);
      phase += down;
      const advance = Math.floor(phase / up);
      position += advance;
      phase -= advance * up;
    }
    this.#position = position;
    this.#phase = phase;
    return written;
  }

  /** What silence after the last input brings out: outputs up to its end. Nothing can follow but `reset`. */
  flush(output: Float32Array): number {
    const { taps } = this.#filter;
    const silence = new Float32Array(taps >> 1);
    return this.process(silence, silence.length, output);
  }

  reset(): void {
    const { taps } = this.#filter;
    // The first output is centred on the first input.
    this.#historyLength = (taps >> 1) - 1;
    this.#history.fill(0, 0, this.#historyLength);
    this.#position = 0;
    this.#phase = 0;
  }

  #append(input: Float32Array, count: number): void {
    const kept = Math.max(0, this.#historyLength - this.#position);
    if (this.#historyLength + count > this.#history.length) {
      if (kept + count > this.#history.length) {
        const larger = new Float32Array(2 * (kept + count));
        larger.set(this.#history.subarray(this.#position, this.#historyLength));
        this.#history = larger;
      } else {
        this.#history.copyWithin(0, this.#position, this.#historyLength);
      }
      // Decimation may have stepped beyond what there is.
      this.#position = Math.max(0, this.#position - this.#historyLength);
      this.#historyLength = kept;
    }
    if (count === input.length) this.#history.set(input, this.#historyLength);
    else for (let i = 0; i < count; i++) this.#history[this.#historyLength + i] = input[i]!;
    this.#historyLength += count;
  }
}

interface PolyphaseFilter {
  up: number;
  down: number;
  /** Per phase; even. */
  taps: number;
  /** `taps` for each of the `up` phases, in the order of time. */
  coefficients: Float32Array;
}

/** Four sums, because each addition waits for the one before it. `taps` is a multiple of four. */
function dotProduct(
  history: Float32Array,
  from: number,
  coefficients: Float32Array,
  start: number,
  taps: number,
): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let tap = 0; tap < taps; tap += 4) {
    a += history[from + tap]! * coefficients[start + tap]!;
    b += history[from + tap + 1]! * coefficients[start + tap + 1]!;
    c += history[from + tap + 2]! * coefficients[start + tap + 2]!;
    d += history[from + tap + 3]! * coefficients[start + tap + 3]!;
  }
  return a + b + (c + d);
}

const filters = new Map<string, PolyphaseFilter>();

function polyphaseFilter(inputRateHz: number, outputRateHz: number): PolyphaseFilter {
  for (const rateHz of [inputRateHz, outputRateHz]) {
    if (!Number.isInteger(rateHz) || rateHz < 1) throw new RangeError('a sample rate is a positive whole number');
  }
  const divisor = greatestCommonDivisor(inputRateHz, outputRateHz);
  const up = outputRateHz / divisor;
  const down = inputRateHz / divisor;
  const key = `${up}/${down}`;
  const cached = filters.get(key);
  if (cached !== undefined) return cached;
  const filter = designFilter(up, down);
  if (filter.coefficients.length <= MOST_CACHED_COEFFICIENTS) filters.set(key, filter);
  return filter;
}

function designFilter(up: number, down: number): PolyphaseFilter {
  // In input samples: the filter is as much longer as the output rate is lower.
  const stretch = Math.max(1, down / up);
  const half = 2 * Math.ceil((ZERO_CROSSINGS * stretch) / 2);
  const taps = 2 * half;
  const coefficients = new Float32Array(up * taps);
  const bandwidth = (2 * CUTOFF) / stretch;
  const windowAtZero = besselI0(KAISER_BETA);
  for (let phase = 0; phase < up; phase++) {
    const fraction = phase / up;
    let sum = 0;
    const start = phase * taps;
    for (let tap = 0; tap < taps; tap++) {
      const distance = tap - (half - 1) - fraction;
      const edge = distance / half;
      const window = Math.abs(edge) >= 1 ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - edge * edge)) / windowAtZero;
      const value = bandwidth * sinc(bandwidth * distance) * window;
      coefficients[start + tap] = value;
      sum += value;
    }
    // Every phase passes a constant alike, or it would hum at the difference of the rates.
    for (let tap = 0; tap < taps; tap++) coefficients[start + tap] = coefficients[start + tap]! / sum;
  }
  return { up, down, taps, coefficients };
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Modified Bessel function of the first kind, order zero. */
function besselI0(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-17; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
