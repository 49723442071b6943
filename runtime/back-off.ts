export interface BackOffOptions {
  firstMs: number;
  longestMs: number;
}

/** Delays between attempts that double up to a limit. */
export class BackOff {
  readonly #options: BackOffOptions;
  #nextMs: number;

  constructor(options: BackOffOptions) {
    this.#options = options;
    this.#nextMs = options.firstMs;
  }

  /** The delay before the next attempt. */
  next(): number {
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(this.#options.longestMs, 2 * delayMs);
    return delayMs;
  }

  /** After a success: the next delay is the first one again. */
  reset(): void {
    this.#nextMs = this.#options.firstMs;
  }
}
