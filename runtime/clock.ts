/** Clock of actors and engines, which tests simulate. XState accepts it as its clock. */
export interface Clock {
  /** Wall time, in milliseconds since the epoch: for stamps only, because it may step by hours either way. */
  now(): number;
  /** Milliseconds since an arbitrary start. It never steps: subtract two readings to measure a duration. */
  monotonicMs(): number;
  setTimeout(callback: (...args: unknown[]) => void, delayMs: number): unknown;
  clearTimeout(handle: unknown): void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/** An instant: the stamp to store, and the reading for measuring durations. */
export interface Moment {
  at: Date;
  monotonicMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { at: new Date(clock.now()), monotonicMs: clock.monotonicMs() };
}
