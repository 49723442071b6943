/**
 * Looks values up, one lookup of a key at a time. Callers that ask meanwhile share the next lookup. It begins after they
 * asked, so they see every change that was made before.
 */
export class SharedLookups<Value> {
  readonly #lookUp: (key: string) => Promise<Value>;
  readonly #lookups = new Map<string, { running: Promise<Value>; next: Promise<Value> | null }>();

  constructor(lookUp: (key: string) => Promise<Value>) {
    this.#lookUp = lookUp;
  }

  /** @throws the error of the lookup */
  async get(key: string): Promise<Value> {
    const known = this.#lookups.get(key);
    if (known === undefined) return await this.#begin(key);
    known.next ??= known.running.then(ignore, ignore).then(() => this.#begin(key));
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

function ignore(): void {}
