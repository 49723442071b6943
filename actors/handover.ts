import { raceAbort } from '../runtime/waiting.ts';

/** Hands items from a producer to a consumer, one at a time. The producer waits for each to be taken. */
export class Handover<T> {
  #offered: { item: T; taken: () => void } | null = null;
  #end: { error: unknown } | 'done' | null = null;
  #changed: (() => void) | null = null;

  /**
   * Offers every item of the source. Resolves when the last one is taken.
   * @throws the source's error; the signal's reason when aborted
   */
  async sendAll(source: AsyncIterable<T>, signal: AbortSignal): Promise<void> {
    for await (const item of source) {
      signal.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#offered = { item, taken: resolve };
      this.#changed?.();
      await raceAbort(promise, signal);
    }
  }

  /** Ends the sequence. */
  finish(): void {
    this.#finish('done');
  }

  /** Makes `take` reject, after the item on offer. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  /** Returns the next item, or null at the end. Allows one consumer at a time. @throws the error given to `fail` */
  async take(): Promise<T | null> {
    const item = await this.peek();
    this.#offered?.taken();
    this.#offered = null;
    return item;
  }

  /** As `take`, but leaves the item on offer. */
  async peek(): Promise<T | null> {
    for (;;) {
      if (this.#offered !== null) return this.#offered.item;
      if (this.#end === 'done') return null;
      if (this.#end !== null) throw this.#end.error;
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  #finish(end: { error: unknown } | 'done'): void {
    this.#end ??= end;
    this.#changed?.();
  }
}
