/** Time as actors and engines see it; tests pass a simulated one. XState takes it as its clock. */
export interface Clock {
  /** Wall time, in milliseconds since the epoch: for stamps only, because it may step by hours either way. */
  now(): number;
  /** Milliseconds since some start. It never steps: subtract two readings to measure a duration. */
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

/** An instant: the stamp that is stored, and the reading that durations are measured from. */
export interface Moment {
  at: Date;
  monotonicMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { at: new Date(clock.now()), monotonicMs: clock.monotonicMs() };
}
