import { describe, expect, it } from 'vitest';
import { ComplexFft, RealFft } from '../../media/dsp/fft.ts';
import * as fc from '../properties.ts';

const SIZES = [4, 8, 64, 256];

/** One bin by the definition of the discrete Fourier transform. */
function binOf(real: ArrayLike<number>, imaginary: ArrayLike<number>, bin: number): [number, number] {
  let [sumReal, sumImaginary] = [0, 0];
  for (let i = 0; i < real.length; i += 1) {
    const angle = (-2 * Math.PI * bin * i) / real.length;
    sumReal += real[i]! * Math.cos(angle) - imaginary[i]! * Math.sin(angle);
    sumImaginary += real[i]! * Math.sin(angle) + imaginary[i]! * Math.cos(angle);
  }
  return [sumReal, sumImaginary];
}

const samplesOf = (size: number) => fc.float64Array({ minLength: size, maxLength: size, min: -1, max: 1, noNaN: true });

describe.each(SIZES)('transform of %i samples', (size) => {
  it('equals the definition, and its inverse returns the samples', () => {
    const fft = new ComplexFft(size);
    fc.assert(
      fc.property(samplesOf(size), samplesOf(size), fc.nat(size - 1), (wantedReal, wantedImaginary, bin) => {
        const [real, imaginary] = [wantedReal.slice(), wantedImaginary.slice()];
        fft.transform(real, imaginary);
        const [expectedReal, expectedImaginary] = binOf(wantedReal, wantedImaginary, bin);
        expect(real[bin]).toBeCloseTo(expectedReal, 9);
        expect(imaginary[bin]).toBeCloseTo(expectedImaginary, 9);
        fft.transform(imaginary, real);
        const farthest = real.map((_, i) =>
          Math.hypot(real[i]! / size - wantedReal[i]!, imaginary[i]! / size - wantedImaginary[i]!),
        );
        expect(Math.max(...farthest)).toBeLessThan(1e-12);
      }),
    );
  });

  it('returns the power of each bin of real samples', () => {
    const fft = new RealFft(size);
    fc.assert(
      fc.property(samplesOf(size), fc.nat(size / 2), (samples, bin) => {
        const powers = new Float32Array(size / 2 + 1);
        fft.powers(Float32Array.from(samples), powers);
        const [real, imaginary] = binOf(samples, new Float64Array(size), bin);
        expect(Math.sqrt(powers[bin]!)).toBeCloseTo(Math.hypot(real, imaginary), 3);
      }),
    );
  });
});

it.each([0, 3, 6, 100])('a size of %i is rejected', (size) => {
  expect(() => new ComplexFft(size)).toThrow(RangeError);
});
