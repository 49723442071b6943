/** The part of a clock that is needed here. */
export interface LanguageClock {
  /** Milliseconds since some start; never steps. */
  monotonicMs(): number;
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** @throws the signal's reason */
export async function pause(
  ms: number,
  { signal, clock }: { signal: AbortSignal; clock: LanguageClock },
): Promise<void> {
  const over = Promise.withResolvers<void>();
  await inTime(over.promise, { ms, signal, clock, onLate: over.resolve });
}

/**
 * What the promise comes to, unless the signal is aborted first. After `ms` `onLate` is called, whose throw ends the wait.
 * @throws what `onLate` throws; the signal's reason
 */
export async function inTime<T>(
  promise: Promise<T>,
  { ms, signal, clock, onLate }: { ms: number; signal: AbortSignal; clock: LanguageClock; onLate: () => void },
): Promise<T> {
  // Whoever stopped waiting does not want to hear how it went on.
  promise.catch(() => {});
  signal.throwIfAborted();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const abort = () => ended.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const timer = clock.setTimeout(() => {
    try {
      onLate();
    } catch (error) {
      ended.reject(error);
    }
  }, ms);
  try {
    return await Promise.race([promise, ended.promise]);
  } finally {
    clock.clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
