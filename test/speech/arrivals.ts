/** Things that come one after the other, and whoever waits for one of them. */
export class Arrivals<Item> {
  readonly all: Item[] = [];
  #next = Promise.withResolvers<void>();

  push(item: Item): void {
    this.all.push(item);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /** The first that matches, whether it came already or is to come. */
  async first(matches: (item: Item) => boolean): Promise<Item> {
    for (;;) {
      const found = this.all.find(matches);
      if (found !== undefined) return found;
      await this.#next.promise;
    }
  }

  /** Resolves when so many are there that match. */
  async count(count: number, matches: (item: Item) => boolean = () => true): Promise<void> {
    while (this.all.filter(matches).length < count) await this.#next.promise;
  }
}
