/** Median of all frequencies so far, within an eighth of a semitone. Each value takes constant time. */
export class RunningMedian {
  readonly #counts = new Uint32Array(BINS);
  #bin = 0;
  #below = 0;
  #total = 0;

  add(hz: number): void {
    const bin = Math.max(0, Math.min(BINS - 1, Math.round(Math.log2(hz / LOWEST_HZ) * BINS_PER_OCTAVE)));
    this.#counts[bin]! += 1;
    this.#total += 1;
    if (bin < this.#bin) this.#below += 1;
    while (2 * this.#below > this.#total) {
      this.#bin -= 1;
      this.#below -= this.#counts[this.#bin]!;
    }
    while (2 * (this.#below + this.#counts[this.#bin]!) < this.#total) {
      this.#below += this.#counts[this.#bin]!;
      this.#bin += 1;
    }
  }

  /** Null without values. */
  get hz(): number | null {
    return this.#total === 0 ? null : LOWEST_HZ * 2 ** (this.#bin / BINS_PER_OCTAVE);
  }
}

const LOWEST_HZ = 40;
const BINS_PER_OCTAVE = 96;
/** Four octaves. */
const BINS = 4 * BINS_PER_OCTAVE + 1;
