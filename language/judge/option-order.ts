import { seededRandom } from '../../runtime/seeded-random.ts';

/** Exclusive upper bound of seeds, which are integers from 0. */
export const SEEDS = 2 ** 31;

/**
 * Shuffles the answers, because judges favour what they read first or last. The same seed, sample and question give the
 * same order.
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

/** Derives the seed of a sample, or of a question in a sample. */
export function derivedSeed(seed: number, index: number): number {
  return Math.floor(seededRandom((seed ^ Math.imul(index + 1, 0x9e3779b9)) >>> 0)() * SEEDS);
}
