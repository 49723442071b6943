/** Periods of the kernel on each side. */
const ZERO_CROSSINGS = 16;

/**
 * Lowers the sample rate of a stream with a windowed sinc (Blackman), which removes frequencies above the new limit.
 * Delays by half of the kernel, about a millisecond.
 */
export class Resampler {
  readonly #step: number;
  readonly #cutoff: number;
  readonly #halfWidth: number;
  #kept = new Float32Array(0);
  /** Position of the next output sample, in input samples since the first of `#kept`. */
  #position: number;

  constructor(fromHz: number, toHz: number) {
    this.#step = fromHz / toHz;
    // A little below half of the lower rate, for the slope of the filter.
    this.#cutoff = 0.92 * Math.min(1, toHz / fromHz);
    this.#halfWidth = Math.ceil(ZERO_CROSSINGS / this.#cutoff);
    this.#kept = new Float32Array(this.#halfWidth);
    this.#position = this.#halfWidth;
  }

  process(input: Float32Array): Float32Array<ArrayBuffer> {
    const samples = new Float32Array(this.#kept.length + input.length);
    samples.set(this.#kept);
    samples.set(input, this.#kept.length);
    const last = samples.length - 1 - this.#halfWidth;
    const output = new Float32Array(Math.max(0, Math.floor((last - this.#position) / this.#step) + 1));
    for (let index = 0; index < output.length; index++) {
      output[index] = this.#valueAt(samples, this.#position);
      this.#position += this.#step;
    }
    const spent = Math.max(0, Math.floor(this.#position) - this.#halfWidth);
    this.#kept = samples.slice(spent);
    this.#position -= spent;
    return output;
  }

  #valueAt(samples: Float32Array, position: number): number {
    const first = Math.ceil(position - this.#halfWidth);
    let [sum, weights] = [0, 0];
    for (let index = first; index <= position + this.#halfWidth; index++) {
      const weight = this.#weight(index - position);
      sum += weight * samples[index]!;
      weights += weight;
    }
    return sum / weights;
  }

  #weight(distance: number): number {
    const x = Math.PI * this.#cutoff * distance;
    const window = (Math.PI * distance) / this.#halfWidth;
    return (x === 0 ? 1 : Math.sin(x) / x) * (0.42 + 0.5 * Math.cos(window) + 0.08 * Math.cos(2 * window));
  }
}
