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

  next(): number {
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(this.#options.longestMs, 2 * delayMs);
    return delayMs;
  }

  /** Call after a success: the next delay is the first one again. */
  reset(): void {
    this.#nextMs = this.#options.firstMs;
  }
}
