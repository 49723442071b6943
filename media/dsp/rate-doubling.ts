import { Resampler } from './resample.ts';

/**
 * 16-bit samples from 8 kHz to 16 kHz or back, block by block: twice as many, or half as many, at once. Late by half the
 * filter, which is 4 ms. Allocates only to grow.
 */
export class RateDoubler {
  readonly #rate: SteadyResampler;

  constructor() {
    this.#rate = new SteadyResampler(8000, 16_000);
  }

  /** Turns the first `count` samples into twice as many. */
  double(samples: Int16Array, count: number, doubled: Int16Array): void {
    this.#rate.process(samples, count, doubled);
  }

  reset(): void {
    this.#rate.reset();
  }
}

export class RateHalver {
  readonly #rate: SteadyResampler;

  constructor() {
    this.#rate = new SteadyResampler(16_000, 8000);
  }

  /** Turns the first `count` samples, an even number, into half as many. */
  halve(samples: Int16Array, count: number, halved: Int16Array): void {
    this.#rate.process(samples, count, halved);
  }

  reset(): void {
    this.#rate.reset();
  }
}

class SteadyResampler {
  readonly #resampler: Resampler;
  #input = new Float32Array(0);
  #output = new Float32Array(0);

  constructor(inputRateHz: number, outputRateHz: number) {
    this.#resampler = new Resampler(inputRateHz, outputRateHz);
    this.reset();
  }

  /** Fills the filter with silence, so that every block from now on gives all of its outputs. */
  reset(): void {
    this.#resampler.reset();
    this.#makeRoom(1);
    this.#input[0] = 0;
    while (this.#resampler.process(this.#input, 1, this.#output) === 0);
  }

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
