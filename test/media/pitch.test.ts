import { describe, expect, it } from 'vitest';
import { PITCH_STEP_MS, PitchTracker, trackPitch } from '../../media/dsp/pitch.ts';
import { seededRandom } from '../../runtime/seeded-random.ts';
import * as fc from '../properties.ts';
import { spokenUtterances } from '../speech/spoken.ts';
import { syntheticVowel } from './synthetic-vowels.ts';

const PITCHES_HZ = [60, 71, 85, 100, 120, 143, 170, 202, 241, 286, 340, 400];

function trackOf(hz: number, more: Partial<Parameters<typeof syntheticVowel>[0]>): Float32Array {
  const sampleRateHz = more.sampleRateHz ?? 16_000;
  const samples = syntheticVowel({ sampleRateHz, seconds: 0.4, hzAt: () => hz, ...more });
  const found = trackPitch(samples, sampleRateHz).hz.subarray(5, 35);
  expect(found.length).toBeGreaterThan(20);
  return found;
}

describe('trackPitch', () => {
  it.each(['a', 'i', 'u', 'e'] as const)('finds the pitch of "%s" within 1 %% from 60 to 400 Hz', (vowel) => {
    for (const hz of PITCHES_HZ) {
      for (const found of trackOf(hz, { vowel })) expect(Math.abs(found / hz - 1)).toBeLessThan(0.01);
    }
  });

  it('finds the pitch at every sample rate', () => {
    for (const sampleRateHz of [8000, 11_025, 22_050, 24_000, 44_100, 48_000]) {
      for (const hz of [60, 150, 400]) {
        for (const found of trackOf(hz, { sampleRateHz })) expect(Math.abs(found / hz - 1)).toBeLessThan(0.01);
      }
    }
  });

  it('makes no octave errors with 2 % jitter', () => {
    for (const vowel of ['a', 'i', 'u', 'e'] as const) {
      for (const hz of PITCHES_HZ) {
        const found = trackOf(hz, { vowel, jitter: 0.02, random: seededRandom(hz) });
        for (const value of found) expect(Math.abs(value / hz - 1)).toBeLessThan(0.06);
      }
    }
  });

  it('follows a glide of an octave in half a second', () => {
    const hzAt = (seconds: number) => 110 * 2 ** (seconds / 0.5);
    const samples = syntheticVowel({ sampleRateHz: 16_000, seconds: 0.5, hzAt });
    const { hz, stepMs } = trackPitch(samples, 16_000);
    for (let frame = 5; frame < 45; frame++) {
      expect(Math.abs(hz[frame]! / hzAt((frame * stepMs) / 1000) - 1)).toBeLessThan(0.02);
    }
  });

  it('finds the pitch with noise 10 dB below', () => {
    const random = seededRandom(5);
    const samples = syntheticVowel({ sampleRateHz: 16_000, seconds: 1, hzAt: () => 140 });
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    const amplitude = Math.sqrt((3 * power) / 10);
    const { hz } = trackPitch(
      samples.map((sample) => sample + amplitude * (2 * random() - 1)),
      16_000,
    );
    expect(hz.length).toBeGreaterThanOrEqual(95);
    for (const found of hz.subarray(5, 95)) expect(Math.abs(found / 140 - 1)).toBeLessThan(0.02);
  });

  it('finds no voice in silence, noise and hum far below speech', () => {
    const random = seededRandom(7);
    const silence = trackPitch(new Float32Array(16_000), 16_000).hz;
    expect(silence.length).toBeGreaterThanOrEqual(95);
    expect(silence.every((hz) => hz === 0)).toBe(true);
    const noise = Float32Array.from({ length: 16_000 }, () => random() - 0.5);
    expect(trackPitch(noise, 16_000).hz.filter((hz) => hz > 0).length).toBeLessThan(5);
    const hum = Float32Array.from({ length: 16_000 }, (_, i) => 0.005 * Math.sin((2 * Math.PI * 60 * i) / 16_000));
    hum.set(syntheticVowel({ sampleRateHz: 16_000, seconds: 0.3, hzAt: () => 120 }), 8000);
    expect(
      trackPitch(hum, 16_000)
        .hz.subarray(0, 45)
        .every((hz) => hz === 0),
    ).toBe(true);
  });

  it('locates start and end of voicing within 30 ms', () => {
    const samples = new Float32Array(16_000);
    samples.set(syntheticVowel({ sampleRateHz: 16_000, seconds: 0.5, hzAt: () => 120 }), 4000);
    const voiced = Array.from(trackPitch(samples, 16_000).hz, (hz) => hz > 0);
    expect(Math.abs(voiced.indexOf(true) * PITCH_STEP_MS - 250)).toBeLessThanOrEqual(30);
    expect(Math.abs(voiced.lastIndexOf(true) * PITCH_STEP_MS - 750)).toBeLessThanOrEqual(30);
  });

  it('does not depend on scale, and returns a value per started 10 ms', () => {
    const samples = syntheticVowel({ sampleRateHz: 16_000, seconds: 0.3, hzAt: () => 200 });
    const { hz } = trackPitch(samples, 16_000);
    expect(
      trackPitch(
        samples.map((sample) => sample * 32_767),
        16_000,
      ).hz,
    ).toEqual(hz);
    expect(hz.length).toBe(30);
    expect(trackPitch(new Float32Array(0), 16_000).hz.length).toBe(0);
    expect(trackPitch(new Float32Array(1), 8000).hz.length).toBe(1);
    expect(trackPitch(new Float32Array(81), 8000).hz.length).toBe(2);
  });

  it('finds one male voice in a recording', () => {
    const { samples } = spokenUtterances().find(({ name }) => name === 'librivox-0870')!;
    const voiced = trackPitch(Float32Array.from(samples), 16_000)
      .hz.filter((hz) => hz > 0)
      .sort();
    expect(voiced[Math.floor(voiced.length / 2)]).toBeGreaterThan(85);
    expect(voiced[Math.floor(voiced.length / 2)]).toBeLessThan(115);
    expect(voiced.filter((hz) => hz > 180 || hz < 60).length / voiced.length).toBeLessThan(0.03);
  });
});

describe('PitchTracker', () => {
  it('gives the same result for any block sizes', () => {
    const samples = syntheticVowel({ sampleRateHz: 22_050, seconds: 0.6, hzAt: (at) => 100 + 100 * at });
    const track = (sizes: readonly number[]) => {
      const tracker = new PitchTracker(22_050, { usualPeak: 1 });
      const hz = new Float32Array(200);
      let frames = 0;
      let at = 0;
      for (const size of [...sizes, samples.length]) {
        const block = samples.subarray(at, at + size);
        at += block.length;
        frames += tracker.process(block, block.length, hz.subarray(frames));
      }
      return hz.slice(0, frames + tracker.flush(hz.subarray(frames)));
    };
    const whole = track([]);
    expect(whole).toEqual(trackPitch(samples, 22_050).hz);
    fc.assert(
      fc.property(fc.array(fc.nat(3000), { maxLength: 12 }), (sizes) => {
        expect(track(sizes)).toEqual(whole);
      }),
      { numRuns: 30 },
    );
  });

  it('reports each moment within 200 ms', () => {
    const samples = syntheticVowel({ sampleRateHz: 16_000, seconds: 1, hzAt: () => 120 });
    const tracker = new PitchTracker(16_000);
    const hz = new Float32Array(200);
    let frames = 0;
    for (let at = 0; at < samples.length; at += 160) {
      frames += tracker.process(samples.subarray(at, at + 160), 160, hz);
      expect(frames * PITCH_STEP_MS).toBeGreaterThanOrEqual((at + 160) / 16 - 200);
    }
  });
});
