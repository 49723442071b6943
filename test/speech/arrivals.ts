/** An ordered log of items that tests can await. */
export class Arrivals<Item> {
  readonly all: Item[] = [];
  #next = Promise.withResolvers<void>();

  push(item: Item): void {
    this.all.push(item);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /** The first match, already present or still to arrive. */
  async first(matches: (item: Item) => boolean): Promise<Item> {
    for (;;) {
      const found = this.all.find(matches);
      if (found !== undefined) return found;
      await this.#next.promise;
    }
  }

  async count(count: number, matches: (item: Item) => boolean = () => true): Promise<void> {
    while (this.all.filter(matches).length < count) await this.#next.promise;
  }
}
