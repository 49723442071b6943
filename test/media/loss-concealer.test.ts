import { describe, expect, it } from 'vitest';
import { meanPower } from '../../media/dsp/level.ts';
import { LossConcealer } from '../../media/dsp/loss-concealer.ts';
import { tone } from '../../media/dsp/tones.ts';
import * as fc from '../properties.ts';
import { largest, whiteNoise } from './sounds.ts';
import { syntheticVowel } from './synthetic-vowels.ts';

const FRAME = 160;
const RATE_HZ = 8000;

const SOUNDS: Record<string, Int16Array> = {
  'a tone': tone({ frequenciesHz: [233], durationMs: 1000 }),
  'a high tone': tone({ frequenciesHz: [1234], durationMs: 1000 }),
  'a low voice': vowel((seconds) => 95 + 25 * seconds, 'a'),
  'a high voice': vowel((seconds) => 240 - 40 * seconds, 'i'),
};

describe('packet loss concealment', () => {
  it.each(Object.keys(SOUNDS))('approximates lost %s better than silence or the previous frame', (name) => {
    const sound = SOUNDS[name]!;
    for (let lost = 10; lost < 40; lost += 3) {
      const received = passed(sound, [lost]);
      const from = lost * FRAME;
      const original = sound.subarray(from, from + FRAME);
      const error = errorPower(original, received.subarray(from, from + FRAME));
      expect(error, `frame ${lost}`).toBeLessThan(0.7 * meanPower(original));
      expect(error, `frame ${lost}`).toBeLessThan(errorPower(original, sound.subarray(from - FRAME, from)));
    }
  });

  it.each(Object.keys(SOUNDS))('joins %s without a click before and after', (name) => {
    const sound = SOUNDS[name]!;
    const steepest = steepestStep(sound);
    for (const lost of [[11], [17, 18], [20, 21, 22], [30, 31, 32, 33, 34]]) {
      expect(steepestStep(passed(sound, lost)), `frames ${lost}`).toBeLessThan(1.25 * steepest);
    }
  });

  it('keeps the level of noise initially', () => {
    const noise = Int16Array.from(whiteNoise(RATE_HZ, 2000, 3));
    const received = passed(noise, [20]).subarray(20 * FRAME, 20 * FRAME + 80);
    expect(meanPower(received)).toBeGreaterThan(0.3 * meanPower(noise));
    expect(meanPower(received)).toBeLessThan(2 * meanPower(noise));
  });

  it('fades from 10 ms and reaches silence at 60 ms', () => {
    const received = passed(SOUNDS['a tone']!, [10, 11, 12, 13, 14]);
    const from = 10 * FRAME;
    const peakAt = (ms: number): number => largest(received.subarray(from + 8 * ms, from + 8 * (ms + 5)));
    expect(peakAt(5)).toBeGreaterThan(0.9 * largest(SOUNDS['a tone']!));
    for (let ms = 15; ms < 55; ms += 5) expect(peakAt(ms + 5)).toBeLessThan(peakAt(ms));
    expect(largest(received.subarray(from + 480, 15 * FRAME))).toBe(0);
  });

  it('continues fading when only a few samples arrive between losses', () => {
    const sound = SOUNDS['a low voice']!;
    const concealer = new LossConcealer();
    const frame = new Int16Array(FRAME);
    for (let i = 0; i < 10; i++) {
      frame.set(sound.subarray(i * FRAME, (i + 1) * FRAME));
      concealer.addReceived(frame, 0, FRAME);
    }
    for (let i = 0; i < 20; i++) {
      frame.fill(0);
      concealer.conceal(frame, 0, FRAME - 8);
      concealer.addReceived(frame, FRAME - 8, FRAME);
    }
    expect(largest(frame)).toBe(0);
  });

  it('passes lossless audio unchanged, and stays silent before the first sound', () => {
    const sound = SOUNDS['a high voice']!;
    expect(passed(sound, [])).toEqual(sound);
    const received = passed(sound, [0, 1, 2]);
    expect(largest(received.subarray(0, 3 * FRAME))).toBe(0);
  });

  it('survives any pattern of loss in any sound', () => {
    const runs = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 700 })), { maxLength: 30 });
    fc.assert(
      fc.property(fc.int16Array({ minLength: 700, maxLength: 700 }), runs, (samples, pattern) => {
        const concealer = new LossConcealer();
        for (const [isLost, count] of pattern) {
          const frame = samples.slice();
          if (isLost) concealer.conceal(frame, 700 - count, 700);
          else concealer.addReceived(frame, 700 - count, 700);
          expect(frame.subarray(0, 700 - count)).toEqual(samples.subarray(0, 700 - count));
        }
      }),
    );
  });
});

function vowel(hzAt: (seconds: number) => number, name: 'a' | 'i'): Int16Array {
  const samples = syntheticVowel({ sampleRateHz: RATE_HZ, seconds: 1, hzAt, vowel: name });
  return Int16Array.from(samples, (sample) => 12_000 * sample);
}

/** Output when these 20 ms frames are lost. */
function passed(sound: Int16Array, lost: readonly number[]): Int16Array {
  const concealer = new LossConcealer();
  const received = sound.slice();
  for (let frame = 0; frame < sound.length / FRAME; frame++) {
    const view = received.subarray(frame * FRAME, (frame + 1) * FRAME);
    if (lost.includes(frame)) concealer.conceal(view.fill(0), 0, FRAME);
    else concealer.addReceived(view, 0, FRAME);
  }
  return received;
}

function errorPower(original: Int16Array, received: Int16Array): number {
  return meanPower(original.map((sample, i) => (sample - received[i]!) / 2)) * 4;
}

function steepestStep(samples: Int16Array): number {
  let most = 0;
  for (let i = 1; i < samples.length; i++) most = Math.max(most, Math.abs(samples[i]! - samples[i - 1]!));
  return most;
}
