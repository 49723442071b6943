import { describe, expect, it } from 'vitest';
import { decodeG711 } from '../../../media/codecs/g711.ts';
import { Resampler } from '../../../media/dsp/resample.ts';
import { isClear, lacksUpperBand, UpperBand } from '../../../speech/engines/pocketsphinx/upper-band.ts';
import { asMulaw8k, spokenUtterances, withNoise } from '../spoken.ts';

const RATE_HZ = 16_000;

describe('what a telephone leaves out', () => {
  it.each(spokenUtterances())('is missed in $name by telephone alone, noisy or not', ({ samples }) => {
    expect(lacksUpperBand(blocksOf(samples))).toBe(false);
    expect(lacksUpperBand(blocksOf(byTelephone(samples)))).toBe(true);
    expect(lacksUpperBand(blocksOf(byTelephone(withNoise(samples, 10, 1))))).toBe(true);
  });

  it('is made for nearly all recordings, and for none that is in noise', () => {
    // As an utterance begins: with what was before it.
    const utterances = spokenUtterances().map(({ samples }) =>
      Int16Array.from([...new Int16Array(RATE_HZ / 2), ...samples]),
    );
    const clear = utterances.filter((samples) => isClear(blocksOf(byTelephone(samples))));
    const noisy = utterances.filter((samples) => isClear(blocksOf(byTelephone(withNoise(samples, 15, 1)))));
    expect(clear.length / utterances.length).toBeGreaterThan(0.8);
    expect(noisy).toEqual([]);
  });

  it('is not asked of silence, or of less than a frame', () => {
    expect(lacksUpperBand(blocksOf(new Int16Array(RATE_HZ)))).toBe(false);
    expect(lacksUpperBand([new Int16Array(100).fill(1000)])).toBe(false);
  });

  it('is made above what there is, which stays as it was', () => {
    const tones = Int16Array.from(
      { length: RATE_HZ },
      (_, index) => 8000 * (sine(index, 500) + sine(index, 2500)) * 0.5,
    );
    const extended = tones.slice();
    new UpperBand().addTo(extended);
    for (const hz of [500, 2500]) expect(levelDb(extended, hz)).toBeCloseTo(levelDb(tones, hz), 0);
    expect(levelDb(tones, 5000)).toBeLessThan(-60);
    expect(levelDb(extended, 5000)).toBeGreaterThan(-40);
  });

  it('is nothing where there are no consonants to make it of', () => {
    const hum = Int16Array.from({ length: RATE_HZ }, (_, index) => 8000 * sine(index, 200));
    const extended = hum.slice();
    new UpperBand().addTo(extended);
    for (const hz of [4500, 5000, 6000]) expect(levelDb(extended, hz)).toBeLessThan(-60);
  });

  it('is the same however the samples are cut, and never beyond full scale', () => {
    const { samples } = spokenUtterances()[0]!;
    const loud = byTelephone(samples).map((sample) => Math.max(-32_768, Math.min(32_767, sample * 20)));
    const whole = loud.slice();
    new UpperBand().addTo(whole);
    const parts = loud.slice();
    const band = new UpperBand();
    for (let start = 0; start < parts.length; start += 777) band.addTo(parts.subarray(start, start + 777));
    expect(parts).toEqual(whole);
  });
});

function byTelephone(samples: Int16Array): Int16Array {
  const octets = asMulaw8k(samples);
  const narrow = new Int16Array(octets.length);
  decodeG711('PCMU', octets, narrow);
  const resampler = new Resampler(8000, RATE_HZ);
  const output = new Float32Array(resampler.outputBound(narrow.length));
  return Int16Array.from(output.subarray(0, resampler.process(Float32Array.from(narrow), narrow.length, output)));
}

function blocksOf(samples: Int16Array): Int16Array[] {
  return Array.from({ length: Math.ceil(samples.length / 1600) }, (_, index) =>
    samples.slice(index * 1600, (index + 1) * 1600),
  );
}

function sine(index: number, hz: number): number {
  return Math.sin((2 * Math.PI * hz * index) / RATE_HZ);
}

/** Of one frequency, over full scale, once the filters have swung in. */
function levelDb(samples: Int16Array, hz: number): number {
  let [real, imaginary] = [0, 0];
  const from = RATE_HZ / 5;
  for (let index = from; index < samples.length; index++) {
    real += samples[index]! * sine(index, hz);
    imaginary += samples[index]! * Math.cos((2 * Math.PI * hz * index) / RATE_HZ);
  }
  return 20 * Math.log10((2 * Math.hypot(real, imaginary)) / (samples.length - from) / 32_768 + 1e-9);
}
