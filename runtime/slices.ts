import { setImmediate } from 'node:timers/promises';

/** Longest time that work may block the event loop. */
const SLICE_MS = 2;
/** UTF-16 units of a text per slice. */
const TEXT_SLICE = 2_048;

/** A time slice for work on this thread. When it is over, rest before continuing. */
export class Slice {
  #startedMs = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#startedMs >= SLICE_MS;
  }

  /** Yields to other work, then starts the next slice. */
  async rest(): Promise<void> {
    await setImmediate();
    this.#startedMs = performance.now();
  }
}

/**
 * Runs a generator without blocking the event loop. It yields where it may be interrupted.
 * @throws the signal's reason; what the work throws
 */
export async function runInSlices<Result>(work: Generator<void, Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const slice = new Slice();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (!slice.isOver) continue;
    await slice.rest();
    signal.throwIfAborted();
  }
}

/** Consecutive ranges of a long text, with rests in between. Never splits a surrogate pair. */
export async function* textSlices(text: string): AsyncGenerator<{ from: number; to: number }, void> {
  for (let from = 0; from < text.length; ) {
    const to = sliceEnd(text, from);
    yield { from, to };
    from = to;
    if (from < text.length) await setImmediate();
  }
}

function sliceEnd(text: string, from: number): number {
  const end = Math.min(text.length, from + TEXT_SLICE);
  const isHigh = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return isHigh ? end + 1 : end;
}
