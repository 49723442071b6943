import { systemClock } from './clock.ts';
import { type Timers, within } from './waiting.ts';

/** A lookup that takes longer, for example over a dead connection, delays no other. */
const LONGEST_WAIT_MS = 250;

/** More keys than have lookups at once. */
const MOST_IDLE_KEYS = 1_000;

/** The lookup of a key that began last, and the one that follows it; null if no caller waits for that. */
interface Line<Value> {
  running: Promise<Value> | null;
  next: Promise<Value> | null;
}

/**
 * Looks values up, usually one lookup of a key at a time. Callers that ask meanwhile share the next lookup. It begins
 * after they asked, so they see every change that was made before.
 */
export class SharedLookups<Value> {
  readonly #lookUp: (key: string) => Promise<Value>;
  readonly #clock: Timers;
  /**
   * Idle keys stay for a while: V8 keeps the tables of a map that changes often, and all values in them, until the next
   * full garbage collection.
   */
  readonly #lines = new Map<string, Line<Value>>();

  constructor(lookUp: (key: string) => Promise<Value>, { clock = systemClock }: { clock?: Timers } = {}) {
    this.#lookUp = lookUp;
    this.#clock = clock;
  }

  /** @throws the error of the lookup */
  async get(key: string): Promise<Value> {
    const line = this.#lineOf(key);
    if (line.running === null) return await this.#begin(key, line);
    line.next ??= within(line.running, { ms: LONGEST_WAIT_MS, clock: this.#clock })
      .catch(() => {})
      .then(() => this.#begin(key, line));
    return await line.next;
  }

  #lineOf(key: string): Line<Value> {
    const known = this.#lines.get(key);
    if (known !== undefined) return known;
    if (this.#lines.size >= MOST_IDLE_KEYS) this.#forgetIdle();
    const line: Line<Value> = { running: null, next: null };
    this.#lines.set(key, line);
    return line;
  }

  #forgetIdle(): void {
    for (const [key, { running }] of this.#lines) if (running === null) this.#lines.delete(key);
  }

  #begin(key: string, line: Line<Value>): Promise<Value> {
    const lookup = this.#lookUp(key);
    line.running = lookup;
    line.next = null;
    const rest = (): void => {
      if (line.running === lookup && line.next === null) line.running = null;
    };
    lookup.then(rest, rest);
    return lookup;
  }
}
