import { setImmediate } from 'node:timers/promises';

/**
 * Runs to its end what yields now and then, and lets others run whenever it took more than a millisecond or two: nobody waits
 * for a long text.
 * @throws the signal's reason; what the work throws
 */
export async function runInSlices<Result>(work: Generator<void, Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  let sliceStartedMs = performance.now();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() - sliceStartedMs < SLICE_MS) continue;
    await setImmediate();
    signal.throwIfAborted();
    sliceStartedMs = performance.now();
  }
}

const SLICE_MS = 2;
