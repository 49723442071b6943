/** Long enough for a busy machine, but below the test timeout, so that the failure names the condition. */
const PATIENCE_MS = 60_000;
const INTERVAL_MS = 25;

/**
 * The real ones, even while a test simulates them: `vi.waitFor` moves a simulated clock on at each check, so that a
 * busy machine changes what the test says about time.
 */
const { setTimeout: setRealTimeout, performance: realPerformance } = globalThis;
const realNow = realPerformance.now.bind(realPerformance);

/** Waits until the check no longer throws, and returns its result. Default: 60 s. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = PATIENCE_MS): Promise<T> {
  const deadline = realNow() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (realNow() >= deadline) throw error;
    }
    await nextCheck();
  }
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | 0n | ''>;

/**
 * Waits until the check returns a truthy value, and returns it. A failure names the condition. A check that throws ends
 * the wait.
 */
export async function untilTruthy<T>(check: () => T | Promise<T>, condition = 'the condition'): Promise<Truthy<T>> {
  const deadline = realNow() + PATIENCE_MS;
  for (;;) {
    const value = await checked(check, condition);
    if (value) return value as Truthy<T>;
    if (realNow() >= deadline) throw new Error(`never true within a minute: ${condition}`);
    await nextCheck();
  }
}

async function checked<T>(check: () => T | Promise<T>, condition: string): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw new Error(`could not be checked: ${condition}`, { cause: error });
  }
}

function nextCheck(): Promise<void> {
  return new Promise((resolve) => setRealTimeout(resolve, INTERVAL_MS));
}
