import { describe, expect, it } from 'vitest';
import { Resampler } from '../../../media/dsp/resample.ts';
import * as fc from '../../properties.ts';

const RATES_HZ = [8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
const OUTPUT_RATE_HZ = 16_000;

function sine(frequencyHz: number, rateHz: number, seconds = 0.5): Float32Array {
  const length = Math.round(rateHz * seconds);
  return Float32Array.from({ length }, (_, i) => 10_000 * Math.sin((2 * Math.PI * frequencyHz * i) / rateHz));
}

/** Resamples in blocks of these lengths, repeating the last. */
function resample(resampler: Resampler, input: Float32Array, blockLengths = [input.length]): Float32Array {
  const output = new Float32Array(resampler.outputBound(input.length) + 1);
  let written = 0;
  let block = 0;
  for (let at = 0; at < input.length; ) {
    const length = Math.min(blockLengths[Math.min(block++, blockLengths.length - 1)]!, input.length - at);
    written += resampler.process(input.subarray(at, at + length), length, output.subarray(written));
    at += length;
  }
  written += resampler.flush(output.subarray(written));
  return output.slice(0, written);
}

/** Level in dB of a tone of 10 000 and of the rest, without filter transients. */
function measure(output: Float32Array, frequencyHz: number): { gainDb: number; restDb: number } {
  const middle = output.subarray(output.length >> 3, output.length - (output.length >> 3));
  const basis = [Math.sin, Math.cos].map((wave) =>
    Float64Array.from(middle, (_, i) =>
      wave((2 * Math.PI * frequencyHz * (i + (output.length >> 3))) / OUTPUT_RATE_HZ),
    ),
  ) as [Float64Array, Float64Array];
  const product = (a: ArrayLike<number>, b: ArrayLike<number>): number => {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
    return sum;
  };
  const [s, c] = basis;
  const determinant = product(s, s) * product(c, c) - product(s, c) ** 2;
  const a = (product(s, middle) * product(c, c) - product(c, middle) * product(s, c)) / determinant;
  const b = (product(c, middle) * product(s, s) - product(s, middle) * product(s, c)) / determinant;
  const rest = middle.map((sample, i) => sample - a * s[i]! - b * c[i]!);
  return {
    gainDb: 20 * Math.log10(Math.hypot(a, b) / 10_000),
    restDb: 10 * Math.log10(product(rest, rest) / middle.length / (10_000 ** 2 / 2)),
  };
}

describe('resampler', () => {
  it.each(RATES_HZ)('preserves level and time of the passband of %i Hz, and adds nothing', (rateHz) => {
    const lowerHz = Math.min(rateHz, OUTPUT_RATE_HZ);
    for (const share of [0.01, 0.1, 0.25, 0.4, 0.425]) {
      const frequencyHz = share * lowerHz;
      const output = resample(new Resampler(rateHz, OUTPUT_RATE_HZ), sine(frequencyHz, rateHz));
      const { gainDb, restDb } = measure(output, frequencyHz);
      expect(Math.abs(gainDb), `${frequencyHz} Hz`).toBeLessThan(0.01);
      expect(restDb, `${frequencyHz} Hz`).toBeLessThan(-100);
      const ideal = sine(frequencyHz, OUTPUT_RATE_HZ);
      const middle = output.length >> 1;
      expect(Math.abs(output[middle]! - ideal[middle]!), `${frequencyHz} Hz`).toBeLessThan(20);
    }
  });

  it.each(RATES_HZ.filter((rateHz) => rateHz > OUTPUT_RATE_HZ))('prevents aliasing of %i Hz', (rateHz) => {
    for (const frequencyHz of [8640, 9000, 9999, 10_700, 15_000, 21_000]) {
      if (frequencyHz >= rateHz / 2) continue;
      const output = resample(new Resampler(rateHz, OUTPUT_RATE_HZ), sine(frequencyHz, rateHz));
      const middle = output.subarray(output.length >> 3, output.length - (output.length >> 3));
      const power = middle.reduce((sum, sample) => sum + sample * sample, 0) / middle.length;
      expect(10 * Math.log10(power / (10_000 ** 2 / 2)), `${frequencyHz} Hz`).toBeLessThan(-100);
    }
  });

  it('gives the same samples for any block sizes', () => {
    const rate = fc.constantFrom(...RATES_HZ, 7919, 96_000);
    const blockLengths = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(rate, blockLengths, fc.integer({ min: 0, max: 3000 }), (rateHz, lengths, samples) => {
        const input = Float32Array.from({ length: samples }, (_, i) => 3000 * Math.sin(i * i * 0.001));
        const whole = resample(new Resampler(rateHz, OUTPUT_RATE_HZ), input);
        expect(resample(new Resampler(rateHz, OUTPUT_RATE_HZ), input, lengths)).toEqual(whole);
        expect(whole.length).toBe(Math.ceil((samples * OUTPUT_RATE_HZ) / rateHz));
      }),
      { numRuns: 60 },
    );
  });

  it('restarts after a reset', () => {
    const resampler = new Resampler(8000, OUTPUT_RATE_HZ);
    const first = resample(resampler, sine(440, 8000));
    resampler.reset();
    expect(resample(resampler, sine(440, 8000))).toEqual(first);
  });

  it('rejects invalid rates', () => {
    for (const rateHz of [0, -8000, 1.5, Number.NaN]) {
      expect(() => new Resampler(rateHz, OUTPUT_RATE_HZ)).toThrow(RangeError);
    }
  });
});
