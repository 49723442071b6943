import { systemClock } from './clock.ts';
import { type Timers, within } from './waiting.ts';

/** A lookup that takes longer, for example over a dead connection, delays no other. */
const LONGEST_WAIT_MS = 250;

/**
 * Looks values up, usually one lookup of a key at a time. Callers that ask meanwhile share the next lookup. It begins
 * after they asked, so they see every change that was made before.
 */
export class SharedLookups<Value> {
  readonly #lookUp: (key: string) => Promise<Value>;
  readonly #clock: Timers;
  /** The lookup that began last, and the one that follows it; null if no caller waits for that. */
  readonly #lookups = new Map<string, { running: Promise<Value>; next: Promise<Value> | null }>();

  constructor(lookUp: (key: string) => Promise<Value>, { clock = systemClock }: { clock?: Timers } = {}) {
    this.#lookUp = lookUp;
    this.#clock = clock;
  }

  /** @throws the error of the lookup */
  async get(key: string): Promise<Value> {
    const known = this.#lookups.get(key);
    if (known === undefined) return await this.#begin(key);
    known.next ??= within(known.running, { ms: LONGEST_WAIT_MS, clock: this.#clock })
      .catch(() => {})
      .then(() => this.#begin(key));
    return await known.next;
  }

  #begin(key: string): Promise<Value> {
    const lookup = { running: this.#lookUp(key), next: null };
    this.#lookups.set(key, lookup);
    const forget = (): void => {
      if (this.#lookups.get(key) === lookup && lookup.next === null) this.#lookups.delete(key);
    };
    lookup.running.then(forget, forget);
    return lookup.running;
  }
}
