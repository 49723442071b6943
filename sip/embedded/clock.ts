/** Clock of the SIP server, so that tests can run 32-second timers instantly. */
export interface Clock {
  /** Calls `run` once after `delayMs`. The returned function cancels it, any number of times. */
  after(delayMs: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Contains a throw in a timer, which would end the thread and with it every call. */
export function containedClock(clock: Clock, onFault: (error: unknown) => void): Clock {
  return {
    after: (delayMs, run) =>
      clock.after(delayMs, () => {
        try {
          run();
        } catch (error) {
          onFault(error);
        }
      }),
  };
}
