import { vi } from 'vitest';

/** Long enough for a busy machine, but below the test timeout, so that the failure names the condition. */
const PATIENCE = { timeout: 60_000, interval: 25 };

/** Waits until the check no longer throws, and returns its result. Default: 60 s. */
export function eventually<T>(check: () => T | Promise<T>, withinMs = PATIENCE.timeout): Promise<T> {
  return vi.waitFor(check, { ...PATIENCE, timeout: withinMs });
}

/** Waits until the check returns a truthy value, and returns it. A failure names the condition. */
export async function untilTruthy<T>(check: () => T | Promise<T>, condition = 'the condition') {
  try {
    return await vi.waitUntil(check, PATIENCE);
  } catch (error) {
    throw new Error(`never true within a minute: ${condition}`, { cause: error });
  }
}
