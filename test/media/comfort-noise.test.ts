import { describe, expect, it } from 'vitest';
import { levelDbov } from '../../media/dsp/level.ts';
import { NoiseGenerator, type NoiseShape } from '../../media/dsp/noise-generator.ts';
import { emptyComfortNoise, parseComfortNoise } from '../../media/rtp/comfort-noise.ts';
import * as fc from '../properties.ts';
import { largest, whiteNoise } from './sounds.ts';

describe('comfort noise payloads (RFC 3389)', () => {
  it('reads level and quantised coefficients as in the RFC', () => {
    const noise = emptyComfortNoise();
    // N = 127 + k * 32768 / 258 (section 3.2).
    expect(parseComfortNoise(Uint8Array.of(9, 60, 0, 127, 254), 1, 4, noise)).toBe(true);
    expect(noise.levelDbov).toBe(-60);
    expect(noise.order).toBe(3);
    expect([...noise.reflection.subarray(0, 3)]).toEqual([(-258 * 127) / 32_768, 0, (258 * 127) / 32_768]);
  });

  it('ignores the reserved bit of the level and coefficients beyond order twelve', () => {
    const noise = emptyComfortNoise();
    expect(parseComfortNoise(new Uint8Array(40).fill(0xff), 0, 40, noise)).toBe(true);
    expect(noise.levelDbov).toBe(-127);
    expect(noise.order).toBe(12);
    for (const coefficient of noise.reflection) expect(coefficient).toBeLessThan(1);
  });

  it('rejects an empty payload without changing the result', () => {
    const noise = emptyComfortNoise();
    noise.levelDbov = -50;
    expect(parseComfortNoise(new Uint8Array(4), 4, 0, noise)).toBe(false);
    expect(noise.levelDbov).toBe(-50);
  });

  it('reads its own payloads within half a quantisation step', () => {
    const coefficients = fc.array(fc.double({ min: -0.999, max: 0.999, noNaN: true }), { maxLength: 12 });
    fc.assert(
      fc.property(fc.integer({ min: -127, max: 0 }), coefficients, (levelDbov, reflection) => {
        const noise = { levelDbov, order: reflection.length, reflection: Float64Array.from(reflection) };
        const payload = new Uint8Array(16);
        const bytes = writeComfortNoise(payload, 2, noise);
        const read = emptyComfortNoise();
        expect(parseComfortNoise(payload, 2, bytes, read)).toBe(true);
        expect(read.levelDbov).toBe(levelDbov);
        expect(read.order).toBe(reflection.length);
        for (const [i, value] of reflection.entries()) {
          expect(Math.abs(read.reflection[i]! - value)).toBeLessThan(0.004);
        }
      }),
    );
  });
});

describe('comfort noise generator', () => {
  it.each([-70, -50, -30])('generates noise at %i dBov', (level) => {
    for (const order of [0, 4]) {
      const noise = emptyComfortNoise();
      Object.assign(noise, { levelDbov: level, order });
      noise.reflection.set([-0.8, 0.3, -0.1, 0.2]);
      expect(Math.abs(levelDbov(generated(noise)) - level)).toBeLessThan(1);
    }
  });

  it('reproduces the measured spectrum', () => {
    // Filtered noise: each sample depends on the two before.
    const white = whiteNoise(16_000, 100, 4);
    const coloured = new Int16Array(white.length);
    for (let i = 2; i < white.length; i++) {
      coloured[i] = Math.round(white[i]! + 1.2 * coloured[i - 1]! - 0.5 * coloured[i - 2]!);
    }
    const [original, again] = [emptyComfortNoise(), emptyComfortNoise()];
    measureNoise(coloured, 4, original);
    measureNoise(generated(original), 4, again);
    expect(Math.abs(again.levelDbov - original.levelDbov)).toBeLessThan(1);
    for (let i = 0; i < 4; i++) expect(Math.abs(again.reflection[i]! - original.reflection[i]!)).toBeLessThan(0.05);
  });

  it('measures silence as silence', () => {
    const noise = emptyComfortNoise();
    measureNoise(new Int16Array(800), 4, noise);
    expect(noise.levelDbov).toBe(-96);
    expect(largest(generated(noise))).toBeLessThan(2);
  });

  it('stays noise under any description, changed at any time', () => {
    const description = fc.uint8Array({ minLength: 1, maxLength: 14 });
    fc.assert(
      fc.property(fc.array(description, { minLength: 1, maxLength: 5 }), (descriptions) => {
        const generator = new NoiseGenerator();
        const noise = emptyComfortNoise();
        const samples = new Int16Array(400);
        for (const payload of descriptions) {
          payload[0] = Math.max(60, payload[0]! & 0x7f);
          parseComfortNoise(payload, 0, payload.length, noise);
          generator.describe(noise);
          generator.generate(samples, 0, 400);
        }
        // A ringing filter would give a far higher level; rounding alone reaches -90 dBov.
        for (let i = 0; i < 20; i++) generator.generate(samples, 0, 400);
        expect(levelDbov(samples)).toBeLessThan(Math.max(-85, noise.levelDbov) + 20);
      }),
    );
  });
});

/** Two seconds, after the fade-in. */
function generated(noise: ReturnType<typeof emptyComfortNoise>): Int16Array {
  const generator = new NoiseGenerator();
  generator.describe(noise);
  const samples = new Int16Array(20_000);
  generator.generate(samples, 0, samples.length);
  return samples.subarray(4000);
}

/** Writes a payload to `target` at `at`. Returns its bytes. */
function writeComfortNoise(target: Uint8Array, at: number, noise: NoiseShape): number {
  target[at] = Math.max(0, Math.min(127, Math.round(-noise.levelDbov)));
  for (let i = 0; i < noise.order; i++) {
    const step = Math.round((noise.reflection[i]! * 32_768) / 258) + 127;
    target[at + 1 + i] = Math.max(0, Math.min(254, step));
  }
  return 1 + noise.order;
}

/** Measures level and reflection coefficients of `samples` into `noise`, by the Levinson-Durbin recursion. */
function measureNoise(samples: Int16Array, order: number, noise: NoiseShape): void {
  const correlation = new Float64Array(order + 1);
  for (let lag = 0; lag <= order; lag++) {
    let sum = 0;
    for (let i = lag; i < samples.length; i++) sum += samples[i]! * samples[i - lag]!;
    correlation[lag] = sum;
  }
  noise.levelDbov = levelDbov(samples);
  noise.order = order;
  noise.reflection.fill(0);
  let error = correlation[0]!;
  const predictor = new Float64Array(order + 1);
  for (let m = 1; m <= order && error > 0; m++) {
    let sum = correlation[m]!;
    for (let i = 1; i < m; i++) sum += predictor[i]! * correlation[m - i]!;
    const coefficient = -sum / error;
    noise.reflection[m - 1] = coefficient;
    const before = predictor.slice();
    for (let i = 1; i < m; i++) predictor[i] = before[i]! + coefficient * before[m - i]!;
    predictor[m] = coefficient;
    error *= 1 - coefficient * coefficient;
  }
}
