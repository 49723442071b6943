import { Resampler } from '../dsp/resample.ts';

/** Neighbouring samples at 16 kHz, on either side, that affect a sample at 8 kHz. */
const REACH = 64;
const BLOCK = 320;

const input = new Float32Array(BLOCK);
let output = new Float32Array(BLOCK);

/**
 * Converts a 16 kHz sound to 8 kHz for listeners without a wideband codec, in blocks as they are played, because
 * minutes at once would block the thread's calls.
 */
export class NarrowSound {
  readonly samples: Int16Array<ArrayBuffer>;
  readonly #wide: Int16Array;
  readonly #isLooped: boolean;
  readonly #resampler = new Resampler(16_000, 8000);
  /** Valid range of `samples`. */
  #from = 0;
  #to = 0;
  /** Index in `#wide` of the next input, and the number of invalid outputs to skip. */
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

  /** Makes `samples` valid from `from` up to `to`, which may exceed its length. */
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
