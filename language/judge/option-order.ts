/** Seeds are integers from 0 up to this, exclusively. */
export const SEEDS = 2 ** 31;

/**
 * Judges favour what they read first or last, so that each sample is shown the answers in another order. The same seed,
 * sample and question have the same order.
 */
export function shuffled<T>(items: Iterable<T>, seed: number): T[] {
  const order = [...items];
  const random = mulberry32(seed);
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = Math.floor(random() * (last + 1));
    [order[last], order[chosen]] = [order[chosen]!, order[last]!];
  }
  return order;
}

/** Of a sample, or of a question of one. */
export function derivedSeed(seed: number, index: number): number {
  return Math.floor(mulberry32((seed ^ Math.imul(index + 1, 0x9e3779b9)) >>> 0)() * SEEDS);
}

/** Tommy Ettinger's generator: 32 bits of state, good enough to shuffle cards. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
