import { describe, expect, it } from 'vitest';
import { measureVoice } from '../../../speech/voices/measure-voice.ts';
import { sampleProblems } from '../../../speech/voices/sample-quality.ts';
import * as fc from '../../properties.ts';
import { syntheticVoice } from './synthetic-voice.ts';

const RATE_HZ = 16_000;

describe('quality check of a voice sample', () => {
  it('accepts speech in a quiet room', () => {
    expect(problemsOf(voice())).toEqual([]);
    expect(problemsOf(withNoise(voice(), 30))).toEqual([]);
    const sixteenBit = Int16Array.from(voice(), (sample) => sample * 32767);
    expect(sampleProblems(sixteenBit, RATE_HZ, measureVoice(sixteenBit, RATE_HZ))).toEqual([]);
  });

  it('requires speech', () => {
    const sentence = [expect.stringContaining('No speech found')];
    expect(problemsOf(new Float32Array(RATE_HZ * 5))).toEqual(sentence);
    expect(problemsOf(new Float32Array(0))).toEqual(sentence);
  });

  it('reports too little speech, without pauses', () => {
    const [problem, ...others] = problemsOf(voice({ pauses: [[2, 9]] }));
    expect(problem).toMatch(/There are (1\.\d|2) seconds of speech/);
    expect(others).toEqual([]);
  });

  it('reports a loud background', () => {
    expect(problemsOf(withNoise(voice(), 8))).toEqual([expect.stringMatching(/only \d+ dB above the background/)]);
  });

  it('reports clipping', () => {
    const overdriven = voice().map((sample) => Math.max(-1, Math.min(1, sample * 12)));
    expect(problemsOf(overdriven)).toContainEqual(expect.stringContaining('overdriven'));
  });

  it('reports a low level', () => {
    const quiet = voice().map((sample) => sample / 300);
    expect(problemsOf(quiet)).toContainEqual(expect.stringContaining('too quiet'));
  });

  it('accepts any samples', () => {
    const samples = fc.oneof(fc.float32Array({ maxLength: 1000 }), fc.int16Array({ maxLength: 1000 }));
    void fc.assert(
      fc.property(samples, fc.constantFrom(1, 8000, 48_000), fc.option(fc.constant(100)), (data, rate, pitchHz) => {
        for (const problem of sampleProblems(data, rate, { levelDbov: -20, pitchHz })) {
          expect(problem).not.toMatch(/NaN|Infinity|undefined/);
        }
      }),
    );
  });
});

function problemsOf(samples: Float32Array): string[] {
  return sampleProblems(samples, RATE_HZ, measureVoice(samples, RATE_HZ));
}

function voice(options: Partial<Parameters<typeof syntheticVoice>[0]> = {}): Float32Array {
  const pauses = [[4, 5.5]] as const;
  return syntheticVoice({ sampleRateHz: RATE_HZ, seconds: 9, pitchHz: 140, pauses, ...options });
}

/** Adds noise about `snrDb` below the active speech level. */
function withNoise(samples: Float32Array, snrDb: number): Float32Array {
  const level = measureVoice(samples, RATE_HZ).levelDbov;
  const peak = Math.sqrt(3) * 10 ** ((level - snrDb) / 20);
  return samples.map((sample, i) => {
    const value = Math.sin(i * 12.9898 + 78.233) * 43758.5453;
    return sample + peak * (2 * (value - Math.floor(value)) - 1);
  });
}
