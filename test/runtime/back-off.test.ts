import { describe, expect, it } from 'vitest';
import { BackOff } from '../../runtime/back-off.ts';

describe('back-off', () => {
  it('doubles up to its limit and restarts after a reset', () => {
    const backOff = new BackOff({ firstMs: 50, longestMs: 300 });
    expect(Array.from({ length: 5 }, () => backOff.next())).toEqual([50, 100, 200, 300, 300]);
    backOff.reset();
    expect(backOff.next()).toBe(50);
  });
});
