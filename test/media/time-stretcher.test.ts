import { describe, expect, it } from 'vitest';
import { levelDbov } from '../../media/dsp/level.ts';
import { TimeStretcher } from '../../media/dsp/time-stretcher.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';

const RATE_HZ = 8000;

function buzz(hz: number, samples: number): Int16Array {
  return Int16Array.from({ length: samples }, (_, i) =>
    [1, 2, 3].reduce(
      (sum, harmonic) => sum + (4000 / harmonic) * Math.sin((2 * Math.PI * hz * harmonic * i) / RATE_HZ),
      0,
    ),
  );
}

function stretched(samples: Int16Array, factor: number, cuts: readonly number[] = []): number[] {
  const stretcher = new TimeStretcher(RATE_HZ, factor);
  const out: number[] = [];
  let from = 0;
  for (const cut of [...cuts, samples.length]) {
    const to = Math.min(samples.length, from + cut);
    out.push(...stretcher.push(samples.subarray(from, to)));
    from = to;
  }
  out.push(...stretcher.end());
  return out;
}

describe('time-stretched speech', () => {
  it.each([1.2, 2, 3.5])('lasts %d times as long at the same pitch and level', (factor) => {
    const voice = buzz(200, RATE_HZ);
    const slow = Int16Array.from(stretched(voice, factor));
    expect(slow.length).toBe(Math.round(RATE_HZ * factor));
    const middle = slow.subarray(1600, 1600 + 4000);
    expect(toneLevelDbov(middle, 200)).toBeGreaterThan(toneLevelDbov(voice.subarray(0, 4000), 200) - 1.5);
    expect(Math.abs(levelDbov(middle) - levelDbov(voice))).toBeLessThan(1.5);
    expect(toneLevelDbov(middle, 200 / factor)).toBeLessThan(toneLevelDbov(middle, 200) - 20);
  });

  it('does not depend on block sizes', () => {
    const voice = buzz(130, 3000);
    const whole = stretched(voice, 1.7);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 900 }), { maxLength: 8 }), (cuts) => {
        expect(stretched(voice, 1.7, cuts)).toEqual(whole);
      }),
    );
  });

  it('remains empty without samples', () => {
    expect(stretched(new Int16Array(0), 2)).toEqual([]);
  });
});
