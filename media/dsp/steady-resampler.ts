import { Resampler } from './resample.ts';

/**
 * Converts 16-bit samples between 8 kHz and 16 kHz. Every block yields exactly twice or half as many samples. The delay
 * is half the filter, 4 ms. Allocates only to grow.
 */
export class SteadyResampler {
  readonly #resampler: Resampler;
  #input = new Float32Array(0);
  #output = new Float32Array(0);

  constructor(inputRateHz: 8000 | 16_000, outputRateHz: 8000 | 16_000) {
    this.#resampler = new Resampler(inputRateHz, outputRateHz);
    this.reset();
  }

  /** Fills the filter with silence, so that every later block yields all of its outputs. */
  reset(): void {
    this.#resampler.reset();
    this.#makeRoom(1);
    this.#input[0] = 0;
    while (this.#resampler.process(this.#input, 1, this.#output) === 0);
  }

  /** Converts the first `count` samples, an even number when the rate is halved. */
  process(samples: Int16Array, count: number, target: Int16Array): void {
    this.#makeRoom(count);
    const input = this.#input;
    const output = this.#output;
    for (let i = 0; i < count; i++) input[i] = samples[i]!;
    const written = this.#resampler.process(input, count, output);
    for (let i = 0; i < written; i++) target[i] = Math.max(-32_768, Math.min(32_767, Math.round(output[i]!)));
  }

  #makeRoom(count: number): void {
    if (count <= this.#input.length) return;
    this.#input = new Float32Array(count);
    this.#output = new Float32Array(this.#resampler.outputBound(count));
  }
}
