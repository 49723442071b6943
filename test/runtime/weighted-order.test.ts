import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../runtime/seeded-random.ts';
import { orderByWeight } from '../../runtime/weighted-order.ts';

const A = { name: 'a', priority: 10, weight: 1 };
const B = { name: 'b', priority: 10, weight: 3 };
const ZERO = { name: 'zero', priority: 10, weight: 0 };
const LATER = { name: 'later', priority: 20, weight: 9 };

function names(gateways: readonly { name: string }[]): string {
  return gateways.map(({ name }) => name).join(' ');
}

describe('weighted gateway order', () => {
  it('contains every gateway once by priority', () => {
    for (const drawn of [0, 0.1, 0.3, 0.9, 0.999_999]) {
      const order = orderByWeight([LATER, ZERO, B, A], () => drawn);
      expect(order).toHaveLength(4);
      expect(names(order)).toMatch(/ later$/);
    }
  });

  it('distributes calls by weight, with weight 0 last', () => {
    const random = seededRandom(7);
    const firsts = { a: 0, b: 0, zero: 0, later: 0 };
    for (let call = 0; call < 4000; call += 1) {
      const [first] = orderByWeight([A, B, ZERO, LATER], random);
      firsts[first!.name as keyof typeof firsts] += 1;
    }
    expect(firsts.b / firsts.a).toBeGreaterThan(2.6);
    expect(firsts.b / firsts.a).toBeLessThan(3.4);
    expect([firsts.zero, firsts.later]).toEqual([0, 0]);
  });

  it('distributes calls equally if all weights are 0', () => {
    const zeros = ['x', 'y'].map((name) => ({ name, priority: 0, weight: 0 }));
    expect(names(orderByWeight(zeros, () => 0.1))).toBe('x y');
    expect(names(orderByWeight(zeros, () => 0.9))).toBe('y x');
  });
});
