/** So many of a kind of work go on at a time; the rest waits for its turn. */
export interface Lanes {
  /** @throws what the work throws; the signal's reason, also while it waits */
  run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Resolves when nothing goes on. */
  idle(): Promise<void>;
}

export function createLanes(most: number): Lanes {
  const waiting: (() => void)[] = [];
  const running = new Set<Promise<unknown>>();
  let taken = 0;

  async function takeLane(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (taken < most) {
      taken += 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    // Both at once leave the queue, so that a lane is never given to somebody who has gone.
    const enter = () => {
      signal.removeEventListener('abort', leave);
      turn.resolve();
    };
    const leave = () => {
      waiting.splice(waiting.indexOf(enter), 1);
      turn.reject(signal.reason);
    };
    waiting.push(enter);
    signal.addEventListener('abort', leave, { once: true });
    await turn.promise;
  }

  /** To who waits longest: nobody who comes now gets in between. */
  function passLane(): void {
    const next = waiting.shift();
    if (next === undefined) taken -= 1;
    else next();
  }

  return {
    async run(work, signal) {
      await takeLane(signal);
      const going = work();
      running.add(going);
      try {
        return await going;
      } finally {
        running.delete(going);
        passLane();
      }
    },

    async idle() {
      await Promise.allSettled(running);
    },
  };
}
