export interface GateLimits {
  /** Passes at a time. */
  inAll: number;
  /** Passes per lane at a time. Default: as many as in all. */
  perLane?: number;
  /** Waiters in all. Beyond that the lane with most waiters loses its last one. Default: unlimited. */
  waiting?: number;
  /** Waiters per lane. Beyond that new requests are rejected. Default: unlimited. */
  waitingPerLane?: number;
}

export interface PassRequest {
  /** Lanes are served in turns, each in FIFO order. Default: one lane for all. */
  lane?: string;
  /** Ends the wait. A granted pass is kept until it is released. */
  signal?: AbortSignal;
  /** Longest wait. Default: unlimited. */
  patienceMs?: number;
}

export class GateFullError extends Error {
  override readonly name = 'GateFullError';
}

/**
 * Limits the number of concurrent tasks; the others wait in lanes. A released pass goes directly to the next waiter, so
 * new requests never overtake. A waiter whose signal aborts leaves its lane at once.
 */
export class Gate {
  readonly #limits: Required<GateLimits>;
  /** Passes by lane; never 0. */
  readonly #passes = new Map<string, number>();
  /** Waiters by lane, in order of turns; never empty. */
  readonly #lanes = new Map<string, Set<Waiter>>();
  #running = 0;
  #idle: PromiseWithResolvers<void> | null = null;

  constructor({ inAll, perLane = inAll, waiting = Infinity, waitingPerLane = Infinity }: GateLimits) {
    this.#limits = { inAll, perLane, waiting, waitingPerLane };
  }

  get counts(): { running: number; waiting: number; lanes: number } {
    let waiting = 0;
    for (const { size } of this.#lanes.values()) waiting += size;
    return { running: this.#running, waiting, lanes: new Set([...this.#passes.keys(), ...this.#lanes.keys()]).size };
  }

  outlook(lane = ''): 'free' | 'wait' | 'full' {
    if (this.#hasRoom(lane)) return 'free';
    return this.#waitingIn(lane) < this.#limits.waitingPerLane ? 'wait' : 'full';
  }

  /**
   * Resolves with a function that releases the pass. Further calls of it do nothing.
   * @throws GateFullError if the queue is full, or slower than `patienceMs`; the signal's reason
   */
  enter({ lane = '', signal, patienceMs = Infinity }: PassRequest = {}): Promise<() => void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#hasRoom(lane)) return resolve(this.#take(lane));
      this.#makeRoomToWait(lane);
      const stopWaiting = () => {
        signal?.removeEventListener('abort', abort);
        clearTimeout(timer);
      };
      const leave = (reason: unknown) => {
        stopWaiting();
        reject(reason);
      };
      const giveUp = (reason: unknown) => {
        this.#remove(lane, waiter);
        leave(reason);
      };
      const abort = () => giveUp(signal?.reason);
      const enter = (pass: () => void) => {
        stopWaiting();
        resolve(pass);
      };
      const waiter = { enter, leave };
      const late = () => giveUp(new GateFullError('the queue is too slow'));
      const timer = patienceMs === Infinity ? undefined : setTimeout(late, patienceMs);
      this.#lanes.set(lane, (this.#lanes.get(lane) ?? new Set()).add(waiter));
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /**
   * Runs `work` with a pass. @throws what the work throws; GateFullError; the signal's reason, until the work begins
   */
  async run<Result>(work: () => Promise<Result>, request: PassRequest = {}): Promise<Result> {
    const release = await this.enter(request);
    try {
      // It may have aborted just as the pass was granted.
      request.signal?.throwIfAborted();
      return await work();
    } finally {
      release();
    }
  }

  /** Resolves when all passes are released and the queue is empty. */
  async idle(): Promise<void> {
    if (this.#running === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  #hasRoom(lane: string): boolean {
    return this.#running < this.#limits.inAll && (this.#passes.get(lane) ?? 0) < this.#limits.perLane;
  }

  /** @throws GateFullError if the new request must be rejected */
  #makeRoomToWait(lane: string): void {
    if (this.#waitingIn(lane) >= this.#limits.waitingPerLane) throw new GateFullError('too many wait in this lane');
    if (this.counts.waiting < this.#limits.waiting) return;
    const longest = [...this.#lanes].reduce((a, b) => (b[1].size > a[1].size ? b : a), ['', new Set<Waiter>()]);
    const [name, waiters] = longest;
    if (this.#waitingIn(lane) + 1 >= waiters.size) throw new GateFullError('too many wait already');
    const last = [...waiters].at(-1)!;
    this.#remove(name, last);
    last.leave(new GateFullError('others wait who have fewer waiting'));
  }

  #waitingIn(lane: string): number {
    return this.#lanes.get(lane)?.size ?? 0;
  }

  #remove(lane: string, waiter: Waiter): void {
    const waiters = this.#lanes.get(lane);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#lanes.delete(lane);
  }

  #take(lane: string): () => void {
    this.#running += 1;
    this.#passes.set(lane, (this.#passes.get(lane) ?? 0) + 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#release(lane);
      isTaken = false;
    };
  }

  #release(lane: string): void {
    this.#running -= 1;
    const left = this.#passes.get(lane)! - 1;
    if (left > 0) this.#passes.set(lane, left);
    else this.#passes.delete(lane);
    this.#admitNext();
    if (this.#running > 0) return;
    this.#idle?.resolve();
    this.#idle = null;
  }

  /** One released pass admits at most one waiter: the limits of the others have not changed. */
  #admitNext(): void {
    for (const [lane, waiters] of this.#lanes) {
      if (!this.#hasRoom(lane)) continue;
      const waiter = waiters.values().next().value!;
      // The lane moves to the end of the queue.
      this.#lanes.delete(lane);
      waiters.delete(waiter);
      if (waiters.size > 0) this.#lanes.set(lane, waiters);
      waiter.enter(this.#take(lane));
      return;
    }
  }
}

interface Waiter {
  enter: (pass: () => void) => void;
  leave: (reason: unknown) => void;
}
