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
