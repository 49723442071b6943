import { describe, expect, it } from 'vitest';
import { levelDbov } from '../../../../media/dsp/level.ts';
import type { SpeechEffectSettings } from '../../../../speech/synthesis/output/effect-chain.ts';
import { createSpeechEffects } from '../../../../speech/synthesis/output/speech-effects.ts';
import { BAND_CENTRES_HZ } from '../../../../speech/voices/voice-measures.ts';
import { largest } from '../../../media/sounds.ts';
import * as fc from '../../../properties.ts';
import { blockSizes, cut, speechAt } from './streams.ts';

const NOTHING: SpeechEffectSettings = {
  pitchSemitones: 0,
  pitchRange: 1,
  equaliserDb: BAND_CENTRES_HZ.map(() => 0),
  gainDb: 0,
  enhance: false,
};
const EVERYTHING: SpeechEffectSettings = {
  pitchSemitones: 3,
  pitchRange: 0.5,
  equaliserDb: BAND_CENTRES_HZ.map((_, band) => 6 - band / 2),
  gainDb: 6,
  enhance: true,
};
const RATE_HZ = 16_000;
const CEILING = 32_768 * 10 ** (-1 / 20);

function processed(samples: Int16Array, settings: Partial<SpeechEffectSettings>): Float32Array {
  const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...NOTHING, ...settings });
  return joined([effects.process(samples), effects.flush()]);
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

describe('speech effects', () => {
  it('pass samples through unchanged and undelayed if neutral', () => {
    const speech = speechAt(RATE_HZ, 1);
    const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...NOTHING });
    expect(Int16Array.from(effects.process(speech))).toEqual(speech);
    expect(effects.flush().length).toBe(0);
    expect(createSpeechEffects({ sampleRateHz: RATE_HZ, ...NOTHING, equaliserDb: null }).process(speech).length).toBe(
      speech.length,
    );
  });

  it('return as many samples as they received', () => {
    for (const settings of [EVERYTHING, { gainDb: 3 }, { enhance: true }, { pitchSemitones: -5 }]) {
      for (const length of [0, 1, 100, 9999]) {
        expect(processed(speechAt(RATE_HZ, 1).subarray(0, length), settings).length).toBe(length);
      }
    }
  });

  it('give the same output for any block sizes, even across changes', () => {
    const speech = speechAt(RATE_HZ, 2);
    const [first, second] = [speech.subarray(0, 15_000), speech.subarray(15_000)];
    const run = (sizes: readonly number[]) => {
      const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...EVERYTHING });
      const parts = cut(first, sizes).map((block) => effects.process(block));
      effects.set({ ...EVERYTHING, pitchSemitones: 0, pitchRange: 1, gainDb: -3 });
      parts.push(...cut(second, sizes).map((block) => effects.process(block)), effects.flush());
      return joined(parts);
    };
    const whole = run([]);
    expect(whole.length).toBe(speech.length);
    fc.assert(
      fc.property(blockSizes, (sizes) => {
        expect(run(sizes)).toEqual(whole);
      }),
      { numRuns: 6 },
    );
  });

  it('stay 1 dB below full scale without clipping', () => {
    const speech = speechAt(RATE_HZ, 2);
    for (const gainDb of [6, 20, 40]) {
      const output = processed(speech, { gainDb, enhance: gainDb === 20 });
      expect(largest(output)).toBeLessThanOrEqual(CEILING);
    }
  });

  it('keep every sound at its time', () => {
    const clicks = new Int16Array(RATE_HZ);
    for (const at of [1000, 8000, 15_000]) clicks[at] = 8000;
    for (const settings of [{ gainDb: 3 }, { enhance: true }, { pitchSemitones: 4 }, EVERYTHING]) {
      const output = processed(clicks, settings);
      for (const at of [1000, 8000, 15_000]) {
        const around = output.subarray(at - 200, at + 200).map(Math.abs);
        expect(Math.abs(around.indexOf(Math.max(...around)) - 200)).toBeLessThanOrEqual(3);
      }
    }
  });

  it('apply the gain in decibels, and silence for -Infinity', () => {
    const speech = speechAt(RATE_HZ, 2);
    const quiet = Int16Array.from(speech, (sample) => sample / 4);
    const output = Int16Array.from(processed(quiet, { gainDb: 6 }));
    expect(levelDbov(output) - levelDbov(quiet)).toBeCloseTo(6, 1);
    expect(largest(processed(speech, { gainDb: Number.NEGATIVE_INFINITY }))).toBe(0);
  });

  it('change settings without a click', () => {
    const tone = Int16Array.from({ length: RATE_HZ }, (_, i) => 8000 * Math.sin((2 * Math.PI * 200 * i) / RATE_HZ));
    const settings = [{ gainDb: -12 }, {}, { enhance: true }, { gainDb: 3 }].map((some) => ({ ...NOTHING, ...some }));
    const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...NOTHING });
    const parts: Float32Array[] = [];
    for (const [index, some] of settings.entries()) {
      parts.push(effects.process(tone.subarray(index * 3000, (index + 1) * 3000)));
      effects.set(some);
    }
    parts.push(effects.process(tone.subarray(12_000)), effects.flush());
    const output = joined(parts);
    expect(output.length).toBe(tone.length);
    // Steeper than the loudest tone; a click would step by thousands.
    let steepest = 0;
    for (let i = 1; i < output.length; i++) steepest = Math.max(steepest, Math.abs(output[i]! - output[i - 1]!));
    expect(steepest).toBeLessThan(1500);
  });

  it('continue unchanged when set to the same settings', () => {
    const speech = speechAt(RATE_HZ, 1);
    const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...EVERYTHING });
    const parts = [effects.process(speech.subarray(0, 7000))];
    effects.set({ ...EVERYTHING, equaliserDb: [...EVERYTHING.equaliserDb!] });
    parts.push(effects.process(speech.subarray(7000)), effects.flush());
    expect(joined(parts)).toEqual(processed(speech, EVERYTHING));
  });

  it('start afresh after a flush', () => {
    const speech = speechAt(RATE_HZ, 1);
    const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...EVERYTHING });
    const twice = [0, 1].map(() => joined([effects.process(speech), effects.flush()]));
    expect(twice[1]).toEqual(twice[0]);
  });
});

describe('enhancement', () => {
  it('reduces the dynamic range of speech and keeps the level', () => {
    const speech = speechAt(RATE_HZ, 4);
    const gain = 10 ** ((-22 - levelDbov(speech)) / 20);
    const loud = Int16Array.from(speech, (sample) => sample * gain);
    const output = Int16Array.from(processed(loud, { enhance: true }));
    expect(loudestOverUsualDb(loud) - loudestOverUsualDb(output)).toBeGreaterThan(1.5);
    expect(Math.abs(levelDbov(output) - levelDbov(loud))).toBeLessThan(2);
  });

  it('removes rumble and lifts 2 to 4 kHz', () => {
    const gainDb = (hz: number) => {
      const tone = Int16Array.from({ length: RATE_HZ }, (_, i) => 500 * Math.sin((2 * Math.PI * hz * i) / RATE_HZ));
      return (
        levelDbov(Int16Array.from(processed(tone, { enhance: true })).subarray(8000)) - levelDbov(tone.subarray(8000))
      );
    };
    expect(gainDb(30) - gainDb(500)).toBeLessThan(-12);
    expect(gainDb(2800) - gainDb(500)).toBeGreaterThan(2.5);
    expect(gainDb(2800) - gainDb(500)).toBeLessThan(3.5);
  });
});

/** 95th over 50th percentile of 30 ms levels, without pauses. */
function loudestOverUsualDb(samples: Int16Array): number {
  const levels: number[] = [];
  for (let at = 0; at + 480 <= samples.length; at += 480) levels.push(levelDbov(samples.subarray(at, at + 480)));
  const spoken = levels.filter((level) => level > -45).sort((a, b) => a - b);
  return spoken[Math.floor(0.95 * spoken.length)]! - spoken[Math.floor(0.5 * spoken.length)]!;
}
