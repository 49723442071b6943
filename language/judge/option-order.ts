import { seededRandom } from '../../runtime/seeded-random.ts';

/** Seeds are integers from 0 up to this, exclusively. */
export const SEEDS = 2 ** 31;

/**
 * Judges favour what they read first or last, so that each sample is shown the answers in another order. The same seed,
 * sample and question have the same order.
 */
export function shuffled<T>(items: Iterable<T>, seed: number): T[] {
  const order = [...items];
  const random = seededRandom(seed);
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = Math.floor(random() * (last + 1));
    [order[last], order[chosen]] = [order[chosen]!, order[last]!];
  }
  return order;
}

/** Of a sample, or of a question of one. */
export function derivedSeed(seed: number, index: number): number {
  return Math.floor(seededRandom((seed ^ Math.imul(index + 1, 0x9e3779b9)) >>> 0)() * SEEDS);
}
