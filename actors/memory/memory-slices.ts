import type { Chunk } from '../../language/memory/chunks.ts';

/** How long the thread is kept before others have their turn. */
const SLICE_MS = 3;

/**
 * What a generator yields, taken in slices of some milliseconds: it yields undefined where it may be paused.
 * @throws the signal's reason
 */
export async function takenInSlices(chunks: Generator<Chunk | undefined, void>, signal: AbortSignal): Promise<Chunk[]> {
  const taken: Chunk[] = [];
  let sliceEndsAt = performance.now() + SLICE_MS;
  for (const chunk of chunks) {
    if (chunk !== undefined) taken.push(chunk);
    if (performance.now() < sliceEndsAt) continue;
    await new Promise<void>((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    sliceEndsAt = performance.now() + SLICE_MS;
  }
  return taken;
}
