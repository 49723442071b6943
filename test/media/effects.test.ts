import { describe, expect, it } from 'vitest';
import { Biquad, gainDbAt, highPass, peaking } from '../../media/dsp/biquad.ts';
import { Compressor } from '../../media/dsp/compressor.ts';
import { RealFft } from '../../media/dsp/fft.ts';
import { GraphicEqualiser } from '../../media/dsp/graphic-equaliser.ts';
import { PeakLimiter } from '../../media/dsp/peak-limiter.ts';
import { RunningMedian } from '../../media/dsp/running-median.ts';
import { BAND_CENTRES_HZ } from '../../speech/voices/voice-measures.ts';
import * as fc from '../properties.ts';
import { decibels, largest, meanPowerOf, whiteNoise } from './sounds.ts';

function sine(hz: number, amplitude: number, { sampleRateHz = 16_000, seconds = 1 } = {}): Float32Array {
  return Float32Array.from(
    { length: sampleRateHz * seconds },
    (_, i) => amplitude * Math.sin((2 * Math.PI * hz * i) / sampleRateHz),
  );
}

function measuredGainDb(filter: { process(samples: Float32Array, count: number): void }, hz: number): number {
  const input = sine(hz, 1000);
  const output = input.slice();
  filter.process(output, output.length);
  return decibels(meanPowerOf(output.subarray(8000)) / meanPowerOf(input.subarray(8000)));
}

describe('biquad filter', () => {
  it('applies the gain that its coefficients imply', () => {
    const filters = [
      highPass(70, 16_000),
      peaking({ centreHz: 1000, octaves: 1, gainDb: 9, sampleRateHz: 16_000 }),
      peaking({ centreHz: 6000, octaves: 0.4, gainDb: -12, sampleRateHz: 16_000 }),
    ];
    for (const coefficients of filters) {
      for (const hz of [50, 70, 200, 1000, 3000, 6000]) {
        expect(measuredGainDb(new Biquad(coefficients), hz)).toBeCloseTo(gainDbAt(coefficients, hz, 16_000), 2);
      }
    }
  });

  it('attenuates by 3 dB at the corner and 12 dB per octave as a high-pass', () => {
    expect(gainDbAt(highPass(70, 16_000), 70, 16_000)).toBeCloseTo(-3.01, 2);
    expect(gainDbAt(highPass(70, 16_000), 17.5, 16_000)).toBeCloseTo(-24, 0);
    expect(gainDbAt(highPass(70, 16_000), 1000, 16_000)).toBeCloseTo(0, 2);
  });

  it('reaches its gain at the centre and half of it half a bandwidth away as a peak', () => {
    const filter = peaking({ centreHz: 1000, octaves: 1, gainDb: 8, sampleRateHz: 48_000 });
    expect(gainDbAt(filter, 1000, 48_000)).toBeCloseTo(8, 5);
    expect(gainDbAt(filter, 1000 * Math.SQRT2, 48_000)).toBeCloseTo(4, 1);
    expect(gainDbAt(filter, 1000 / Math.SQRT2, 48_000)).toBeCloseTo(4, 1);
  });
});

/** Power per third-octave band, from spectra of 32,768 samples. */
function bandPowers(samples: Float32Array, sampleRateHz: number): number[] {
  const fft = new RealFft(32_768);
  const powers = new Float32Array(16_385);
  const sums = new Float64Array(16_385);
  for (let at = 0; at + 32_768 <= samples.length; at += 32_768) {
    fft.powers(samples.subarray(at, at + 32_768), powers);
    for (let bin = 0; bin < sums.length; bin++) sums[bin]! += powers[bin]!;
  }
  return BAND_CENTRES_HZ.map((centre) => {
    const first = Math.ceil((centre / 2 ** (1 / 6) / sampleRateHz) * 32_768);
    const last = Math.floor(((centre * 2 ** (1 / 6)) / sampleRateHz) * 32_768);
    return sums.subarray(first, last + 1).reduce((sum, power) => sum + power, 0);
  });
}

describe('graphic equaliser', () => {
  it.each([8000, 11_025, 16_000, 22_050, 24_000, 48_000])(
    'applies each band gain to noise of %i Hz within 1 dB',
    (sampleRateHz) => {
      const noise = whiteNoise(32_768 * 10, 1000, 1);
      const before = bandPowers(noise, sampleRateHz);
      for (const gainsDb of [
        BAND_CENTRES_HZ.map((_, band) => (band % 2 === 0 ? 2 : -2)),
        BAND_CENTRES_HZ.map((_, band) => 12 - band),
        BAND_CENTRES_HZ.map((_, band) => Math.max(-12, Math.min(12, 4 * (band - 9)))),
        BAND_CENTRES_HZ.map((_, band) => 7 * Math.sin(0.5 * band)),
        BAND_CENTRES_HZ.map(() => 6),
      ]) {
        const filtered = noise.slice();
        new GraphicEqualiser({ centresHz: BAND_CENTRES_HZ, gainsDb, sampleRateHz }).process(filtered, filtered.length);
        const after = bandPowers(filtered, sampleRateHz);
        for (const [band, centre] of BAND_CENTRES_HZ.entries()) {
          if (centre * 2 ** (1 / 6) > sampleRateHz / 2) continue;
          if (centre > 0.45 * sampleRateHz) continue;
          expect(Math.abs(decibels(after[band]! / before[band]!) - gainsDb[band]!)).toBeLessThan(1);
        }
      }
    },
  );

  it('stays stable for any gains, and silent after the sound', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -12, max: 12, noNaN: true }), { minLength: 20, maxLength: 20 }),
        fc.constantFrom(8000, 16_000, 24_000, 48_000),
        (gainsDb, sampleRateHz) => {
          const samples = new Float32Array(sampleRateHz);
          samples[0] = 30_000;
          new GraphicEqualiser({ centresHz: BAND_CENTRES_HZ, gainsDb, sampleRateHz }).process(samples, samples.length);
          expect(samples.every(Number.isFinite)).toBe(true);
          expect(largest(samples.subarray(sampleRateHz / 2))).toBeLessThan(1);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe('peak limiter', () => {
  const limit = (samples: Float32Array, ceiling = 10_000) => {
    const limiter = new PeakLimiter({ sampleRateHz: 16_000, ceiling });
    const output = new Float32Array(samples.length + limiter.delay);
    output.set(samples);
    limiter.process(output, output.length);
    return { output: output.subarray(limiter.delay), lead: output.subarray(0, limiter.delay) };
  };

  it('keeps every sample of any input below its ceiling', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: -100_000, max: 100_000, noNaN: true }), { maxLength: 400 }), (values) => {
        expect(largest(limit(Float32Array.from(values)).output)).toBeLessThanOrEqual(10_000);
      }),
    );
    expect(largest(limit(whiteNoise(16_000, 20_000, 3)).output)).toBeLessThanOrEqual(10_000);
  });

  it('reduces the gain before a peak instead of clipping', () => {
    const samples = sine(440, 5000).map((sample, i) => sample * (i >= 8000 ? 4 : 1));
    const { output } = limit(samples);
    for (let i = 1; i < samples.length - 1; i++) {
      if (Math.abs(samples[i]!) < 1000) continue;
      const gain = output[i]! / samples[i]!;
      // A clipped sample would have another gain than its neighbours.
      if (Math.abs(samples[i - 1]!) > 1000)
        expect(Math.abs(gain - output[i - 1]! / samples[i - 1]!)).toBeLessThan(0.04);
    }
  });

  it('passes samples below the ceiling unchanged, bit for bit', () => {
    const samples = whiteNoise(4000, 1000, 4);
    const { output, lead } = limit(samples);
    expect(output).toEqual(samples);
    expect(largest(lead)).toBe(0);
  });

  it('recovers within half a second after a peak', () => {
    const samples = sine(440, 1000);
    samples[2000] = 30_000;
    const { output } = limit(samples);
    expect(Math.abs(output[2010]! / samples[2010]!)).toBeLessThan(0.4);
    expect(Math.abs(output[10_005]! / samples[10_005]!)).toBeGreaterThan(0.99);
  });
});

describe('compressor', () => {
  const options = {
    sampleRateHz: 16_000,
    thresholdDbov: -20,
    ratio: 2,
    kneeDb: 6,
    attackMs: 5,
    releaseMs: 80,
    makeUpDb: 2,
  };
  const gainAt = (levelDbov: number) => measuredGainDbOf(sine(1000, 32_768 * Math.SQRT2 * 10 ** (levelDbov / 20)));
  const measuredGainDbOf = (input: Float32Array) => {
    const output = input.slice();
    new Compressor(options).process(output, output.length);
    return decibels(meanPowerOf(output.subarray(8000)) / meanPowerOf(input.subarray(8000)));
  };

  it('applies only make-up gain to soft sounds, and halves levels above the threshold', () => {
    expect(gainAt(-40)).toBeCloseTo(2, 1);
    expect(gainAt(-24)).toBeCloseTo(2, 0);
    expect(Math.abs(gainAt(-10) - (2 - 5))).toBeLessThan(1.5);
    expect(Math.abs(gainAt(-4) - (2 - 8))).toBeLessThan(1.5);
  });
});

it('running median matches sorted values within an eighth of a semitone', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 50, max: 500, noNaN: true }), { minLength: 1, maxLength: 60 }), (values) => {
      const median = new RunningMedian();
      expect(median.hz).toBeNull();
      for (const value of values) median.add(value);
      const sorted = values.toSorted((a, b) => a - b);
      const low = sorted[Math.floor((sorted.length - 1) / 2)]!;
      const high = sorted[Math.floor(sorted.length / 2)]!;
      expect(median.hz!).toBeGreaterThan(low * 2 ** (-1 / 96));
      expect(median.hz!).toBeLessThan(high * 2 ** (1 / 96));
    }),
  );
});
