import { type Clock, systemClock } from './clock.ts';

export type Timers = Pick<Clock, 'setTimeout' | 'clearTimeout'>;

/** Result of `within` after the time limit. */
export const LATE = Symbol('late');

/**
 * Waits for `work` until the signal aborts. The work itself continues, and its later failure is ignored.
 * @throws what the work throws; the signal's reason
 */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Waits for `work` at most `ms`, then resolves with `LATE`. The work itself continues, and its later failure is
 * ignored.
 * @throws what the work throws; the signal's reason
 */
export async function within<T>(
  work: Promise<T>,
  { ms, clock = systemClock, signal }: { ms: number; clock?: Timers; signal?: AbortSignal },
): Promise<T | typeof LATE> {
  const late = Promise.withResolvers<typeof LATE>();
  const timer = ms === Infinity ? null : clock.setTimeout(() => late.resolve(LATE), ms);
  try {
    const first = Promise.race([work, late.promise]);
    return await (signal === undefined ? first : raceAbort(first, signal));
  } finally {
    clock.clearTimeout(timer);
  }
}

/** @throws the signal's reason, as soon as it aborts */
export async function pause(ms: number, { clock, signal }: { clock: Timers; signal: AbortSignal }): Promise<void> {
  await within(Promise.withResolvers<void>().promise, { ms, clock, signal });
}

/** Calls `work` soon, and again every `everyMs` without waiting for it, until the returned function is called. */
export function tick(work: () => void, { everyMs, clock }: { everyMs: number; clock: Timers }): () => void {
  let timer: unknown;
  const callAfter = (delayMs: number) => {
    timer = clock.setTimeout(() => {
      callAfter(everyMs);
      work();
    }, delayMs);
  };
  callAfter(0);
  return () => clock.clearTimeout(timer);
}

/**
 * Runs `work` now, and again `everyMs` after each end, until the signal aborts. Resolves after the last run.
 * @throws what the work throws, which ends the repetition
 */
export async function repeat(
  work: () => Promise<void>,
  { everyMs, clock = systemClock, signal }: { everyMs: number; clock?: Timers; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await work();
    await pause(everyMs, { clock, signal }).catch(() => {});
  }
}
