import { raceAbort } from '../runtime/waiting.ts';
/** Hands things from one who makes them to one who takes them, one at a time: who makes waits for who takes. */
export class Handover<T> {
  #offered: { item: T; taken: () => void } | null = null;
  #end: { error: unknown } | 'done' | null = null;
  #changed: (() => void) | null = null;

  /** Resolves when the last was taken. @throws the source's error, the signal's reason when aborted */
  async giveAll(source: AsyncIterable<T>, signal: AbortSignal): Promise<void> {
    for await (const item of source) {
      signal.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#offered = { item, taken: resolve };
      this.#changed?.();
      await raceAbort(promise, signal);
    }
  }

  /** There is nothing more to take. */
  finish(): void {
    this.#finish('done');
  }

  /** Whoever takes gets the error after what was offered. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  /** One taker at a time. Null when there is nothing more. @throws what it failed with */
  async take(): Promise<T | null> {
    for (;;) {
      if (this.#offered !== null) {
        const { item, taken } = this.#offered;
        this.#offered = null;
        taken();
        return item;
      }
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
