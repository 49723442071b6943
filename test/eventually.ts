import { vi } from 'vitest';

/** As long as a busy machine may take: a little less than a test may, so that the failure tells what was waited for. */
const PATIENCE = { timeout: 25_000, interval: 5 };

/** Waits until the check throws no more, and returns what it returns. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, PATIENCE);
}

/** Waits until the check returns something true, and returns it. */
export function untilTruthy<T>(check: () => T | Promise<T>) {
  return vi.waitUntil(check, PATIENCE);
}
