import { describe, expect, it } from 'vitest';
import { bandOf } from '../../../speech/engines/pocketsphinx/audio-band.ts';
import { byTelephone, spokenUtterances, withNoise } from '../spoken.ts';

const RATE_HZ = 16_000;

describe('band detection', () => {
  it.each(spokenUtterances())(
    'classifies $name as telephone speech only after G.711, with or without noise',
    ({ samples }) => {
      expect(bandOf(blocksOf(samples))).toBe('wideband');
      expect(bandOf(blocksOf(byTelephone(samples)))).toBe('telephone');
      expect(bandOf(blocksOf(byTelephone(withNoise(samples, 10, 1))))).toBe('telephone');
    },
  );

  it('classifies silence and very short audio as wideband', () => {
    expect(bandOf(blocksOf(new Int16Array(RATE_HZ)))).toBe('wideband');
    expect(bandOf([new Int16Array(100).fill(1000)])).toBe('wideband');
  });
});

function blocksOf(samples: Int16Array): Int16Array[] {
  return Array.from({ length: Math.ceil(samples.length / 1600) }, (_, index) =>
    samples.slice(index * 1600, (index + 1) * 1600),
  );
}
