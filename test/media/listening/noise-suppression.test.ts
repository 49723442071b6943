import { describe, expect, it } from 'vitest';
import { levelDbov } from '../../../media/dsp/level.ts';
import { spokenUtterances, withNoise } from '../../speech/spoken.ts';
import { audioOf, detectUtterances, suppressors } from './detect-utterances.ts';
import { joined, silence } from './recogniser.ts';

const sentence = spokenUtterances().find(({ name }) => name === 'librivox-0920')!.samples;
const clean = joined(silence(1000), sentence, silence(1500));
const noisy = withNoise(clean, 8, 1);

function improved(
  received: Int16Array,
  enhancement: 'off' | 'light' | 'adaptive',
): { audio: Int16Array; said: Int16Array } {
  const messages = detectUtterances(received, { enhancement });
  const begins = messages.filter((message) => message.type === 'utterance.begin');
  expect(begins).toHaveLength(1);
  const audio = audioOf(messages, begins[0]!.utteranceId);
  const from = begins[0]!.startMs * 16;
  return { audio, said: clean.subarray(from, from + audio.length) };
}

interface Levels {
  noiseDbov: number;
  voiceDbov: number;
}

/** Residual error in dB, independent of gain. */
function errorDb({ audio, said }: { audio: Int16Array; said: Int16Array }, lag = 0): number {
  let [product, power, total] = [0, 0, 0];
  for (let i = 200; i < said.length - 200; i++) {
    product += audio[i + lag]! * said[i]!;
    power += said[i]! ** 2;
    total += audio[i + lag]! ** 2;
  }
  return 10 * Math.log10((total - product ** 2 / power) / total + 1e-9);
}

describe('noise suppression', () => {
  it('loads in this environment', () => {
    expect(suppressors.problem).toBeNull();
  });

  it('passes samples unchanged when off, apart from a delay', () => {
    expect(errorDb(improved(clean, 'off'))).toBeLessThan(-15);
    const shifted = Int16Array.from(clean, (sample) => Math.min(32_767, sample + 3000));
    const { audio, said } = improved(shifted, 'off');
    const mean = audio.reduce((sum, sample) => sum + sample, 0) / audio.length;
    expect(Math.abs(mean)).toBeLessThan(30);
    expect(errorDb({ audio, said })).toBeLessThan(-15);
  });

  it('removes noise, lightly or adaptively, and preserves the voice', () => {
    const [off, light, adaptive] = (['off', 'light', 'adaptive'] as const).map((enhancement) => {
      const { audio } = improved(noisy, enhancement);
      const preRoll = audio.subarray(0, 3200);
      return { noiseDbov: levelDbov(preRoll), voiceDbov: levelDbov(audio.subarray(16_000, 64_000)) };
    }) as [Levels, Levels, Levels];
    expect(light.noiseDbov).toBeLessThan(off.noiseDbov - 4);
    expect(light.noiseDbov).toBeGreaterThan(off.noiseDbov - 8);
    expect(adaptive.noiseDbov).toBeLessThan(off.noiseDbov - 12);
    expect(Math.abs(adaptive.voiceDbov - off.voiceDbov)).toBeLessThan(2);
  });

  it('leaves clean speech unchanged in adaptive mode', () => {
    const said = improved(clean, 'off').audio;
    expect(errorDb({ audio: improved(clean, 'adaptive').audio, said })).toBeLessThan(-40);
    expect(errorDb({ audio: improved(clean, 'light').audio, said })).toBeGreaterThan(-40);
  });

  it('keeps the timing', () => {
    for (const enhancement of ['off', 'light', 'adaptive'] as const) {
      const pair = improved(noisy, enhancement);
      const errors = Array.from({ length: 81 }, (_, i) => errorDb(pair, i - 40));
      expect(errors.indexOf(Math.min(...errors)) - 40, enhancement).toBe(0);
    }
  });
});
