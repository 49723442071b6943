/** Time as the SIP server sees it, so that tests can run 32-second timers in no time. */
export interface Clock {
  /** Calls `run` once after `delayMs`; the returned function cancels it, any number of times. */
  after(delayMs: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** A throw in a timer would end the thread, and with it every call: here it ends only what the timer was for. */
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
