import { WINDOW_SAMPLES } from './windows.ts';

/** The latest windows, by their number in the stream. */
export class WindowRing {
  readonly capacity: number;
  readonly #samples: Int16Array;
  readonly #powers: Float64Array;
  readonly #speech: Uint8Array;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#samples = new Int16Array(capacity * WINDOW_SAMPLES);
    this.#powers = new Float64Array(capacity);
    this.#speech = new Uint8Array(capacity);
  }

  put(window: number, samples: Int16Array, power: number, isSpeech: boolean): void {
    const slot = window % this.capacity;
    this.#samples.set(samples, slot * WINDOW_SAMPLES);
    this.#powers[slot] = power;
    this.#speech[slot] = isSpeech ? 1 : 0;
  }

  silence(window: number): void {
    this.#speech[window % this.capacity] = 0;
  }

  isSpeech(window: number): boolean {
    return this.#speech[window % this.capacity] === 1;
  }

  power(window: number): number {
    return this.#powers[window % this.capacity]!;
  }

  copy(window: number, count: number): Int16Array<ArrayBuffer> {
    const samples = new Int16Array(count * WINDOW_SAMPLES);
    for (let i = 0; i < count; i++) {
      const at = ((window + i) % this.capacity) * WINDOW_SAMPLES;
      samples.set(this.#samples.subarray(at, at + WINDOW_SAMPLES), i * WINDOW_SAMPLES);
    }
    return samples;
  }

  /** The middle of the longest stretch without speech, or else the quietest window. */
  quietestBetween(from: number, until: number): number {
    let quietest = from;
    let longest = 0;
    let middle = from;
    let length = 0;
    for (let window = from; window < until; window++) {
      length = this.isSpeech(window) ? 0 : length + 1;
      if (length > longest) {
        longest = length;
        middle = window - (length >> 1);
      }
      if (this.power(window) < this.power(quietest)) quietest = window;
    }
    return longest > 0 ? middle : quietest;
  }

  grownTo(capacity: number, windows: number): WindowRing {
    const larger = new WindowRing(capacity);
    for (let window = Math.max(0, windows - this.capacity); window < windows; window++) {
      larger.put(window, this.copy(window, 1), this.power(window), this.isSpeech(window));
    }
    return larger;
  }
}
