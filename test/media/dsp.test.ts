import { describe, expect, it } from 'vitest';
import { decodeG711, encodeG711 } from '../../media/codecs/g711.ts';
import { levelDbov, meanPower, meanPowerOfG711, SILENCE_DBOV } from '../../media/dsp/level.ts';
import { estimateMos } from '../../media/dsp/mos.ts';
import { SnrEstimator } from '../../media/dsp/snr.ts';
import { framesOf, ringbackFrames, tone, toneFrames } from '../../media/dsp/tones.ts';
import { toneLevelDbov } from '../tone-level.ts';

describe('audio level', () => {
  it('measures a full-scale sine as -3 dBov, alone and in a mix', () => {
    const sine = tone({ frequenciesHz: [1000], durationMs: 1000, levelDbfs: 0 });
    expect(levelDbov(sine)).toBeCloseTo(-3.01, 1);
    expect(toneLevelDbov(sine, 1000)).toBeCloseTo(-3.01, 1);
    expect(toneLevelDbov(sine, 1300)).toBeLessThan(-60);
  });

  it('measures silence as the minimum', () => {
    expect(levelDbov(new Int16Array(160))).toBe(SILENCE_DBOV);
    expect(levelDbov(new Int16Array(0))).toBe(SILENCE_DBOV);
    expect(toneLevelDbov(new Int16Array(160), 440)).toBe(SILENCE_DBOV);
  });

  it('measures G.711 octets as their decoded samples', () => {
    const samples = tone({ frequenciesHz: [300, 700], durationMs: 20 });
    for (const codec of ['PCMU', 'PCMA'] as const) {
      const octets = new Uint8Array(170);
      encodeG711(codec, samples, octets.subarray(10));
      const decoded = new Int16Array(160);
      decodeG711(codec, octets.subarray(10), decoded);
      expect(meanPowerOfG711(codec, octets, 10, 170)).toBeCloseTo(meanPower(decoded), 6);
    }
  });
});

describe('tone generator', () => {
  it('cuts a tone into frames of 160 octets and pads the last one', () => {
    const frames = toneFrames('PCMU', { frequenciesHz: [440], durationMs: 50 });
    expect(frames.map((frame) => frame.length)).toEqual([160, 160, 160]);
    expect(frames[2]!.subarray(80).every((octet) => octet === 0xff)).toBe(true);
    expect(framesOf('PCMA', new Int16Array(0))).toEqual([]);
  });

  it.each(['PCMU', 'PCMA'] as const)('rings in %s at 400 and 450 Hz, 0.4 on, 0.2 off, 0.4 on, 2.0 off', (codec) => {
    const frames = ringbackFrames(codec);
    expect(frames).toHaveLength(150);
    const isOn = frames.map((frame) => {
      const samples = new Int16Array(160);
      decodeG711(codec, frame, samples);
      return levelDbov(samples) > -40;
    });
    const expected = Array.from({ length: 150 }, (_, frame) => frame < 20 || (frame >= 30 && frame < 50));
    expect(isOn).toEqual(expected);
    const burst = new Int16Array(3200);
    decodeG711(codec, Buffer.concat(frames.slice(0, 20)), burst);
    expect(toneLevelDbov(burst, 400)).toBeGreaterThan(-25);
    expect(toneLevelDbov(burst, 450)).toBeGreaterThan(-25);
    expect(toneLevelDbov(burst, 425)).toBeLessThan(-35);
  });
});

describe('signal-to-noise estimate', () => {
  const power = (dbov: number): number => 32768 * 32768 * 10 ** (dbov / 10);
  const estimate = (frames: number[]): number | null => {
    const snr = new SnrEstimator();
    for (const dbov of frames) snr.addFrame(power(dbov));
    return snr.estimateDb();
  };
  const talk = (speechDbov: number, noiseDbov: number): number[] =>
    Array.from({ length: 500 }, (_, frame) => (frame % 50 < 25 ? speechDbov : noiseDbov));

  it('separates speech from the noise between words', () => {
    expect(estimate(talk(-20, -50))).toBeCloseTo(30, 0);
    expect(estimate(talk(-25, -37))).toBeCloseTo(12, 0);
  });

  it('returns null without speech, without a pause and at the start', () => {
    expect(estimate(Array.from({ length: 500 }, () => -60))).toBeNull();
    expect(estimate(Array.from({ length: 500 }, () => -20))).toBeNull();
    expect(estimate(talk(-20, -50).slice(0, 30))).toBeNull();
    expect(new SnrEstimator().estimateDb()).toBeNull();
  });

  it('limits the ratio over digital silence', () => {
    const snr = estimate(talk(-15, -200))!;
    expect(snr).toBeGreaterThan(40);
    expect(snr).toBeLessThanOrEqual(60);
  });
});

describe('MOS estimate', () => {
  it('reports toll quality on a clean line, falling with loss, jitter and delay', () => {
    const clean = estimateMos({ lossFraction: 0, jitterMs: 0, roundTripMs: null });
    expect(clean).toBeGreaterThan(4.3);
    expect(clean).toBeLessThanOrEqual(4.5);
    const lossy = [0, 0.01, 0.05, 0.1, 0.3, 1].map((lossFraction) =>
      estimateMos({ lossFraction, jitterMs: 2, roundTripMs: 40 }),
    );
    expect(lossy).toEqual([...lossy].sort((a, b) => b - a));
    expect(lossy.at(-1)).toBeLessThan(1.5);
    expect(estimateMos({ lossFraction: 0, jitterMs: 200, roundTripMs: 40 })).toBeLessThan(clean);
    expect(estimateMos({ lossFraction: 0, jitterMs: 2, roundTripMs: 2000 })).toBeLessThan(3);
  });

  it('stays between 1 and 4.5 for any measurement', () => {
    for (const value of [-1, 0, 1, 1e9]) {
      const mos = estimateMos({ lossFraction: value, jitterMs: value, roundTripMs: value });
      expect(mos).toBeGreaterThanOrEqual(1);
      expect(mos).toBeLessThanOrEqual(4.5);
    }
  });
});
