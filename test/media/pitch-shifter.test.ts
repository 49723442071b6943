import { describe, expect, it } from 'vitest';
import { RealFft } from '../../media/dsp/fft.ts';
import { trackPitch } from '../../media/dsp/pitch.ts';
import { PitchShifter, type PitchShiftOptions } from '../../media/dsp/pitch-shifter.ts';
import { spokenUtterances } from '../speech/spoken.ts';
import { decibels, meanPowerOf, whiteNoise } from './sounds.ts';
import { syntheticVowel } from './synthetic-vowels.ts';

const RATE_HZ = 24_000;

/** Output for blocks of `block` samples, aligned with the input. */
function shifted(samples: Float32Array, options: Partial<PitchShiftOptions>, block = 1000): Float32Array {
  const settings = { sampleRateHz: RATE_HZ, semitones: 0, range: 1, centreHz: null, usualPeak: 8000, ...options };
  const shifter = new PitchShifter(settings);
  const output = new Float32Array(samples.length + shifter.delay);
  output.set(samples);
  for (let at = 0; at < output.length; at += block) {
    const part = output.subarray(at, at + block);
    shifter.process(part, part.length);
  }
  return output.slice(shifter.delay);
}

function vowel(hz: number | ((seconds: number) => number), name: 'a' | 'i' | 'u' | 'e' = 'a', sampleRateHz = RATE_HZ) {
  const hzAt = typeof hz === 'number' ? () => hz : hz;
  return syntheticVowel({ sampleRateHz, seconds: 1, hzAt, vowel: name }).map((sample) => 12_000 * sample);
}

/**
 * Frequency of the first lag at which the autocorrelation of 60 ms comes near its maximum, independent of the tracker.
 */
function periodicityHz(samples: Float32Array, at: number): number {
  const sampleRateHz = RATE_HZ;
  const size = Math.round(0.06 * sampleRateHz);
  const longest = Math.round(sampleRateHz / 40);
  const likeness: number[] = [];
  for (let lag = 0; lag <= longest; lag++) {
    let product = 0;
    let energy = 0;
    for (let i = at; i < at + size; i++) {
      product += samples[i]! * samples[i + lag]!;
      energy += samples[i + lag]! ** 2;
    }
    likeness.push(product / Math.sqrt(energy));
  }
  // Skips the ringing of the first formant near lag zero.
  const shortest = likeness.findIndex((value) => value < 0.3);
  const most = Math.max(...likeness.slice(shortest));
  for (let lag = shortest; lag < longest; lag++) {
    const here = likeness[lag]!;
    if (here > 0.96 * most && here >= likeness[lag - 1]! && here >= likeness[lag + 1]!) return sampleRateHz / lag;
  }
  return 0;
}

describe('PitchShifter', () => {
  it('shifts the pitch by the given semitones', () => {
    for (const hz of [80, 130, 220, 300]) {
      for (const semitones of [-7, -3, 2, 5, 12]) {
        const output = shifted(vowel(hz), { semitones });
        for (const at of [5000, 10_000, 15_000]) {
          expect(Math.abs(periodicityHz(output, at) / (hz * 2 ** (semitones / 12)) - 1)).toBeLessThan(0.02);
        }
      }
    }
  });

  it('works at every sample rate', () => {
    for (const sampleRateHz of [8000, 11_025, 16_000, 22_050, 44_100, 48_000]) {
      const output = shifted(vowel(140, 'a', sampleRateHz), { sampleRateHz, semitones: 4 });
      const found = trackPitch(output, sampleRateHz).hz.subarray(10, 90);
      expect(found).toHaveLength(80);
      for (const hz of found) {
        expect(Math.abs(hz / (140 * 2 ** (4 / 12)) - 1)).toBeLessThan(0.025);
      }
    }
  });

  it('becomes monotone with range 0 and doubles movement with range 2', () => {
    const hzAt = (seconds: number) => 150 * 2 ** (Math.sin(2 * Math.PI * 1.5 * seconds) / 6);
    const input = vowel(hzAt);
    const monotone = shifted(input, { range: 0, centreHz: 150 });
    const wide = shifted(input, { range: 2, centreHz: 150 });
    const { hz } = trackPitch(wide, RATE_HZ);
    for (let frame = 10; frame < 85; frame++) {
      expect(Math.abs(hz[frame]! / (150 * (hzAt(frame / 100) / 150) ** 2) - 1)).toBeLessThan(0.06);
    }
    for (let at = 3000; at < 20_000; at += 1000) {
      expect(Math.abs(periodicityHz(monotone, at) / 150 - 1)).toBeLessThan(0.015);
    }
  });

  it('uses the median of the input without a given centre', () => {
    const input = vowel((seconds) => (seconds < 0.7 ? 140 : 180));
    const output = shifted(input, { range: 0 });
    expect(Math.abs(periodicityHz(output, 19_000) / 140 - 1)).toBeLessThan(0.02);
  });

  it('keeps the spectral envelope of the vowel', () => {
    for (const name of ['a', 'i', 'u', 'e'] as const) {
      const input = vowel(110, name);
      for (const semitones of [-4, 4]) {
        const before = envelopeDb(input);
        const after = envelopeDb(shifted(input, { semitones }));
        const difference = before.map((level, band) => level - after[band]!);
        const mean = difference.reduce((sum, value) => sum + value, 0) / difference.length;
        const spread = Math.sqrt(difference.reduce((sum, value) => sum + (value - mean) ** 2, 0) / difference.length);
        expect(spread).toBeLessThan(4);
      }
    }
  });

  it('keeps the level within 2 dB', () => {
    for (const semitones of [-5, 5]) {
      const input = vowel(130);
      const output = shifted(input, { semitones });
      expect(Math.abs(decibels(meanPowerOf(output) / meanPowerOf(input)))).toBeLessThan(2);
    }
  });

  it('passes unvoiced sound unchanged, bit for bit', () => {
    const noise = whiteNoise(RATE_HZ, 3000, 9);
    expect(shifted(noise, { semitones: 6 })).toEqual(noise);
    const speech = Float32Array.from(spokenUtterances()[0]!.samples);
    const output = shifted(speech, { sampleRateHz: 16_000, semitones: 6 });
    expect(output.filter((sample, i) => sample === speech[i]).length / speech.length).toBeGreaterThan(0.25);
  });

  it('gives the same output for any block sizes', () => {
    const speech = Float32Array.from(spokenUtterances()[1]!.samples.subarray(0, 32_000));
    const whole = shifted(speech, { sampleRateHz: 16_000, semitones: 3, range: 0.5 }, 100_000);
    for (const block of [1, 7, 333, 5000]) {
      expect(shifted(speech, { sampleRateHz: 16_000, semitones: 3, range: 0.5 }, block)).toEqual(whole);
    }
  });
});

/** Power in 250 Hz bands up to 4 kHz, in dB; each holds two harmonics or more. */
function envelopeDb(samples: Float32Array): number[] {
  const fft = new RealFft(8192);
  const powers = new Float32Array(4097);
  fft.powers(
    samples.subarray(6000, 6000 + 8192).map((sample, i) => sample * Math.sin((Math.PI * i) / 8192) ** 2),
    powers,
  );
  const binHz = RATE_HZ / 8192;
  return Array.from({ length: 16 }, (_, band) => {
    const bins = powers.subarray(Math.round((band * 250) / binHz), Math.round(((band + 1) * 250) / binHz));
    return decibels(bins.reduce((sum, power) => sum + power, 0));
  });
}
