import { vi } from 'vitest';

/** As long as a busy machine may take; less than the timeout of a test, so that the failure says what was missing. */
const PATIENCE = { timeout: 60_000, interval: 5 };

/** Waits until the check throws no more, and returns what it returns. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, PATIENCE);
}

/** Waits until the check returns something true, and returns it. */
export function untilTruthy<T>(check: () => T | Promise<T>) {
  return vi.waitUntil(check, PATIENCE);
}
