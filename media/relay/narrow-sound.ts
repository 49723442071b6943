import { Resampler } from '../dsp/resample.ts';

/** Samples at 16 kHz that a sample at 8 kHz depends on, before and after it. */
const REACH = 64;
const BLOCK = 320;

const input = new Float32Array(BLOCK);
let output = new Float32Array(BLOCK);

/**
 * A sound of 16 kHz at 8 kHz, for listeners without a wideband codec. It is converted as far as it is heard: minutes at
 * once would hold up the calls of the thread.
 */
export class NarrowSound {
  readonly samples: Int16Array<ArrayBuffer>;
  readonly #wide: Int16Array;
  readonly #isLooped: boolean;
  readonly #resampler = new Resampler(16_000, 8000);
  /** The part of `samples` that is valid. */
  #from = 0;
  #to = 0;
  /** Index in `#wide` of the next input, and outputs still to come that are not valid. */
  #next = 0;
  #toSkip = 0;

  constructor(wide: Int16Array, isLooped: boolean) {
    this.#wide = wide;
    this.#isLooped = isLooped;
    this.samples = new Int16Array(Math.ceil(wide.length / 2));
    output =
      output.length < this.#resampler.outputBound(BLOCK)
        ? new Float32Array(this.#resampler.outputBound(BLOCK))
        : output;
    this.#startAt(0);
  }

  /** Makes `samples` valid from index `from` up to `to`, which may lie behind its end. */
  prepare(from: number, to: number): void {
    const end = Math.min(to, this.samples.length);
    if (from >= end || (from >= this.#from && end <= this.#to)) return;
    if (from < this.#from || from > this.#to) this.#startAt(from);
    while (this.#to < end) this.#convertBlock();
  }

  #startAt(from: number): void {
    this.#resampler.reset();
    this.#from = from;
    this.#to = from;
    this.#next = 2 * from - REACH;
    this.#toSkip = REACH / 2;
  }

  #convertBlock(): void {
    for (let i = 0; i < BLOCK; i++) input[i] = this.#wideAt(this.#next + i);
    this.#next += BLOCK;
    const written = this.#resampler.process(input, BLOCK, output);
    for (let i = 0; i < written && this.#to < this.samples.length; i++) {
      if (this.#toSkip > 0) this.#toSkip -= 1;
      else this.samples[this.#to++] = Math.max(-32_768, Math.min(32_767, Math.round(output[i]!)));
    }
  }

  #wideAt(index: number): number {
    const wide = this.#wide;
    if (this.#isLooped) return wide[((index % wide.length) + wide.length) % wide.length]!;
    return index >= 0 && index < wide.length ? wide[index]! : 0;
  }
}
