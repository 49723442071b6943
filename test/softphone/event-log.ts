/** Records all events, so that waiting for one cannot miss it. */
export class EventLog<Event extends { type: string }> {
  readonly all: Event[] = [];
  #waiting: { matches: (event: Event) => boolean; resolve: (event: Event) => void }[] = [];

  add(event: Event): void {
    this.all.push(event);
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ matches }) => !matches(event));
    for (const { matches, resolve } of waiting) if (matches(event)) resolve(event);
  }

  ofType<Type extends Event['type']>(type: Type): Extract<Event, { type: Type }>[] {
    return this.all.filter((event): event is Extract<Event, { type: Type }> => event.type === type);
  }

  /** First matching event of a type, past or future. Rejects after `timeoutMs` (default 60 s). */
  async until<Type extends Event['type']>(
    type: Type,
    matches: (event: Extract<Event, { type: Type }>) => boolean = () => true,
    timeoutMs = 60_000,
  ): Promise<Extract<Event, { type: Type }>> {
    type Wanted = Extract<Event, { type: Type }>;
    const isWanted = (event: Event) => event.type === type && matches(event as Wanted);
    return (await this.untilAny(isWanted, `"${type}"`, timeoutMs)) as Wanted;
  }

  /** As `until` for any type; `what` describes the event in the error. */
  async untilAny(matches: (event: Event) => boolean, what: string, timeoutMs = 60_000): Promise<Event> {
    const past = this.all.find(matches);
    if (past !== undefined) return past;
    const { promise, resolve, reject } = Promise.withResolvers<Event>();
    const entry = { matches, resolve };
    this.#waiting.push(entry);
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((waiting) => waiting !== entry);
      const seen = this.all.map((event) => event.type).join(', ');
      reject(new Error(`no ${what} within ${timeoutMs} ms; there was: ${seen || 'nothing'}`));
    }, timeoutMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }
}
