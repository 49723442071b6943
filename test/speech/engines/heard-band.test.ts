import { describe, expect, it } from 'vitest';
import { bandOf } from '../../../speech/engines/pocketsphinx/heard-band.ts';
import { byTelephone, spokenUtterances, withNoise } from '../spoken.ts';

const RATE_HZ = 16_000;

describe('the band of an utterance', () => {
  it.each(spokenUtterances())(
    "of $name is a telephone's only when it came by telephone, noisy or not",
    ({ samples }) => {
      expect(bandOf(blocksOf(samples))).toBe('wideband');
      expect(bandOf(blocksOf(byTelephone(samples)))).toBe('telephone');
      expect(bandOf(blocksOf(byTelephone(withNoise(samples, 10, 1))))).toBe('telephone');
    },
  );

  it('is wide for silence, and for less than a frame', () => {
    expect(bandOf(blocksOf(new Int16Array(RATE_HZ)))).toBe('wideband');
    expect(bandOf([new Int16Array(100).fill(1000)])).toBe('wideband');
  });
});

function blocksOf(samples: Int16Array): Int16Array[] {
  return Array.from({ length: Math.ceil(samples.length / 1600) }, (_, index) =>
    samples.slice(index * 1600, (index + 1) * 1600),
  );
}
