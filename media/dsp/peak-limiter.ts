const LOOKAHEAD_MS = 3;
const RELEASE_MS = 80;

/**
 * Limits peaks by reducing the gain before they arrive. Each sample's gain is held for the look-ahead, recovers with
 * the release time, and is averaged over the look-ahead. So it changes smoothly, and no sample exceeds the ceiling.
 */
export class PeakLimiter {
  /** Delay of the output, in samples. */
  readonly delay: number;
  readonly #ceiling: number;
  readonly #release: number;
  readonly #delayed: Float32Array;
  readonly #averaged: Float64Array;
  #sum: number;
  #slot = 0;
  #gain = 1;
  /** Required gains within the look-ahead, ascending, with their times. The first is the smallest. */
  readonly #needed: Float64Array;
  readonly #neededAt: Float64Array;
  #first = 0;
  #count = 0;
  #now = 0;

  constructor({ sampleRateHz, ceiling }: { sampleRateHz: number; ceiling: number }) {
    this.delay = Math.max(1, Math.round((sampleRateHz * LOOKAHEAD_MS) / 1000));
    this.#ceiling = ceiling;
    this.#release = 1 - Math.exp(-1000 / (RELEASE_MS * sampleRateHz));
    const slots = this.delay + 1;
    this.#delayed = new Float32Array(slots);
    this.#averaged = new Float64Array(slots).fill(1);
    this.#sum = slots;
    this.#needed = new Float64Array(slots + 1);
    this.#neededAt = new Float64Array(slots + 1);
  }

  /** Processes the first `count` in place, with the output delayed by `delay`. Allocates nothing. */
  process(samples: Float32Array, count: number): void {
    const slots = this.#delayed.length;
    for (let i = 0; i < count; i++) {
      const sample = samples[i]!;
      const held = this.#hold(Math.min(1, this.#ceiling / Math.abs(sample)));
      this.#gain = Math.min(held, this.#gain + (1 - this.#gain) * this.#release);
      this.#delayed[this.#slot] = sample;
      this.#sum += this.#gain - this.#averaged[this.#slot]!;
      this.#averaged[this.#slot] = this.#gain;
      this.#slot = this.#slot + 1 === slots ? 0 : this.#slot + 1;
      // Rounded sums may differ from 1 minimally.
      const gain = this.#gain === 1 && this.#sum > slots - 1e-6 ? 1 : this.#sum / slots;
      samples[i] = Math.max(-this.#ceiling, Math.min(this.#ceiling, this.#delayed[this.#slot]! * gain));
    }
  }

  /** The smallest gain required within the look-ahead. */
  #hold(needed: number): number {
    const size = this.#needed.length;
    while (this.#count > 0 && this.#needed[(this.#first + this.#count - 1) % size]! >= needed) this.#count -= 1;
    const last = (this.#first + this.#count) % size;
    this.#needed[last] = needed;
    this.#neededAt[last] = this.#now;
    this.#count += 1;
    if (this.#neededAt[this.#first]! < this.#now - this.delay) {
      this.#first = (this.#first + 1) % size;
      this.#count -= 1;
    }
    this.#now += 1;
    return this.#needed[this.#first]!;
  }
}
