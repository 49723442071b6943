/**
 * Streaming sample rate conversion by a polyphase filter: a Kaiser-windowed sinc of 32 zero crossings on either side.
 * Output sample n lies exactly at time n of the output rate, without delay. Independent of block sizes to the bit.
 */

const ZERO_CROSSINGS = 32;
/** Kaiser's beta for a stop band below -110 dB. */
const KAISER_BETA = 11.2;
/**
 * Middle of the transition, relative to the lower rate. Flat up to 0.425 (3.4 kHz of a telephone's 8 kHz; 6.8 kHz of 16
 * kHz, where the features of recognisers end) and closed from 0.54. Aliases stay above 0.475.
 */
const CUTOFF = 0.475;
/** Larger filters are not cached: odd rates are rare. */
const MOST_CACHED_COEFFICIENTS = 1 << 17;

export class Resampler {
  readonly inputRateHz: number;
  readonly outputRateHz: number;
  readonly #filter: PolyphaseFilter;
  /** Inputs that later outputs need, at least twice the filter length. */
  #history: Float32Array;
  #historyLength = 0;
  /** Position in the history and phase of the next output. */
  #position = 0;
  #phase = 0;

  /** @throws RangeError unless rates are positive integers */
  constructor(inputRateHz: number, outputRateHz: number) {
    this.inputRateHz = inputRateHz;
    this.outputRateHz = outputRateHz;
    this.#filter = polyphaseFilter(inputRateHz, outputRateHz);
    this.#history = new Float32Array(2 * this.#filter.taps);
    this.reset();
  }

  /** Upper bound of the outputs for this number of inputs. */
  outputBound(inputSamples: number): number {
    const { up, down } = this.#filter;
    return Math.ceil(((inputSamples + this.#filter.taps) * up) / down) + 1;
  }

  /** Converts the first `count` samples of `input`. Returns the number written. Allocates only to grow. */
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

  /** Writes the outputs up to the end of the input. Call only `reset` after it. */
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
      // Decimation may have stepped beyond the input.
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
  /** `taps` for each of the `up` phases, in order of time. */
  coefficients: Float32Array;
}

/** Four sums avoid a dependency between additions. `taps` is a multiple of four. */
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
  // In input samples. A lower output rate needs a longer filter.
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
    // Equal gain of all phases at 0 Hz prevents a hum at the difference of the rates.
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
