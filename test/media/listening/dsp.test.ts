import { describe, expect, it } from 'vitest';
import { RealFft } from '../../../media/dsp/fft.ts';
import { NoiseFloor } from '../../../media/dsp/noise-floor.ts';
import { BackgroundLevel, speechSnrDb } from '../../../media/dsp/speech-snr.ts';
import { TonalityMeter } from '../../../media/dsp/tonality.ts';
import { seededRandom } from '../../../runtime/seeded-random.ts';
import * as fc from '../../properties.ts';

const WINDOW = 512;

describe('Fourier transform', () => {
  it('matches the defining sum', () => {
    const samples = fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(samples, (values) => {
        const powers = new Float32Array(17);
        new RealFft(32).powers(Float32Array.from(values), powers);
        for (let bin = 0; bin <= 16; bin++) {
          const angle = (i: number): number => (2 * Math.PI * bin * i) / 32;
          const real = values.reduce((sum, value, i) => sum + value * Math.cos(angle(i)), 0);
          const imaginary = values.reduce((sum, value, i) => sum + value * Math.sin(angle(i)), 0);
          expect(powers[bin]).toBeCloseTo(real ** 2 + imaginary ** 2, 3);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('requires a power of two', () => {
    for (const size of [0, 2, 12, 1000]) expect(() => new RealFft(size)).toThrow(RangeError);
  });
});

describe('tonality', () => {
  /** Tonality of each window from the third on. */
  function shares(at: (seconds: number) => number): { shares: number[]; dtmf: boolean[] } {
    const meter = new TonalityMeter();
    const windows = Array.from({ length: 12 }, (_, window) => {
      const samples = Float32Array.from({ length: WINDOW }, (_, i) => 8000 * at((window * WINDOW + i) / 16_000));
      return { share: meter.add(samples), isDtmf: meter.isDtmf };
    }).slice(2);
    return { shares: windows.map(({ share }) => share), dtmf: windows.map(({ isDtmf }) => isDtmf) };
  }
  const sine = (hz: number, seconds: number): number => Math.sin(2 * Math.PI * hz * seconds);

  it('reaches 1 for steady tones', () => {
    const chord = shares((s) => sine(262, s) + sine(330, s) + sine(392, s));
    expect(Math.min(...chord.shares)).toBeGreaterThan(0.95);
    expect(chord.dtmf).not.toContain(true);
  });

  it('stays low for noise, silence and a gliding voice', () => {
    const random = seededRandom(1);
    expect(Math.max(...shares(() => random() - 0.5).shares)).toBeLessThan(0.3);
    expect(shares(() => 0).shares).toEqual(Array(10).fill(0));
    // Ten partials of 120 Hz, rising by an octave per second.
    const voice = (s: number): number => {
      const turns = (120 * (2 ** s - 1)) / Math.LN2;
      return Array.from({ length: 10 }, (_, k) => Math.sin(2 * Math.PI * (k + 1) * turns)).reduce((a, b) => a + b);
    };
    expect(Math.max(...shares(voice).shares)).toBeLessThan(0.3);
  });

  it('recognises every DTMF digit, even one per cent off, and no other pair of tones', () => {
    for (const low of [697, 770, 852, 941]) {
      for (const high of [1209, 1336, 1477, 1633]) {
        expect(shares((s) => sine(low * 1.01, s) + 0.7 * sine(high * 0.99, s)).dtmf).not.toContain(false);
      }
    }
    for (const [low, high] of [
      [350, 440],
      [480, 620],
      [697, 941],
      [1209, 1633],
      [730, 1270],
    ] as const) {
      expect(shares((s) => sine(low, s) + sine(high, s)).dtmf, `${low} ${high}`).not.toContain(true);
    }
    expect(shares((s) => sine(697, s)).dtmf).not.toContain(true);
  });
});

describe('noise floor', () => {
  it('follows steady noise and detects speech above it', () => {
    const floor = new NoiseFloor();
    const random = seededRandom(2);
    const noise = (): number => 10_000 * (0.85 + 0.3 * random());
    for (let i = 0; i < 200; i++) floor.rises(noise());
    const rises = Array.from({ length: 200 }, () => floor.rises(noise())).filter(Boolean).length;
    expect(rises).toBe(0);
    expect(floor.rises(50_000)).toBe(true);
    expect(10 * Math.log10(floor.power / 10_000)).toBeCloseTo(0, -1);
  });

  it('detects speech at the start of a stream', () => {
    expect(new NoiseFloor().rises(1_000_000)).toBe(true);
  });

  it('forgets loud noise some seconds after its end', () => {
    const floor = new NoiseFloor();
    for (let i = 0; i < 300; i++) floor.rises(1_000_000);
    for (let i = 0; i < 100; i++) floor.rises(5000);
    expect(floor.rises(50_000)).toBe(true);
  });

  it('ignores almost silent sound', () => {
    expect(new NoiseFloor().rises(300)).toBe(false);
  });
});

describe('speech-to-background ratio', () => {
  it('compares added power within bounds', () => {
    expect(speechSnrDb(11_000, 1000)).toBeCloseTo(10, 5);
    expect(speechSnrDb(900, 1000)).toBe(-20);
    expect(speechSnrDb(32_768 ** 2, 0)).toBe(60);
  });

  it('uses the median of the background, and forgets', () => {
    const background = new BackgroundLevel();
    expect(background.medianPower(1)).toBeNull();
    for (let i = 0; i < 20; i++) background.add(1000);
    for (let i = 0; i < 5; i++) background.add(10_000_000);
    expect(10 * Math.log10(background.medianPower(25)! / 1000)).toBeCloseTo(0, 0);
    background.fade(0.1);
    expect(background.medianPower(10)).toBeNull();
    for (let i = 0; i < 5; i++) background.add(100_000);
    expect(10 * Math.log10(background.medianPower(1)! / 100_000)).toBeCloseTo(0, 0);
  });
});
