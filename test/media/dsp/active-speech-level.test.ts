import { describe, expect, it } from 'vitest';
import { ActiveSpeechLevel } from '../../../media/dsp/active-speech-level.ts';
import { SILENCE_DBOV } from '../../../media/dsp/level.ts';

const RATE_HZ = 8000;

describe('active speech level (ITU-T P.56)', () => {
  it('equals the level of a continuous tone', () => {
    const meter = measured(tone(5, -26));
    expect(meter.levelDbov).toBeCloseTo(-26, 1);
    expect(meter.activity).toBeGreaterThan(0.99);
  });

  it('excludes pauses', () => {
    const speech = Float32Array.from([...tone(2, -20), ...new Float32Array(RATE_HZ * 6), ...tone(2, -20)]);
    const meter = measured(speech);
    // 200 ms after each burst count as speech.
    expect(meter.levelDbov).toBeCloseTo(-20 + 10 * Math.log10(4 / 4.5), 0);
    expect(meter.activity).toBeGreaterThan(0.4);
    expect(meter.activity).toBeLessThan(0.48);
  });

  it('excludes noise 30 dB below the speech', () => {
    const noise = Float32Array.from(
      { length: RATE_HZ * 8 },
      (_, i) => 10 ** (-50 / 20) * pseudoRandom(i) * Math.sqrt(3),
    );
    const talk = tone(8, -20);
    const speech = noise.map((sample, i) => (i % (4 * RATE_HZ) < 2 * RATE_HZ ? sample + talk[i]! : sample));
    expect(measured(speech).levelDbov).toBeCloseTo(-20.4, 0);
  });

  it('matches the sample-by-sample procedure of the recommendation', () => {
    for (const seed of [1, 2, 3]) {
      const speech = babble(seed);
      expect(measured(speech).levelDbov).toBeCloseTo(byTheBook(speech), 1);
    }
  });

  it('does not depend on block sizes', () => {
    const speech = babble(4);
    const meter = new ActiveSpeechLevel(RATE_HZ);
    for (let from = 0, size = 1; from < speech.length; from += size, size = (size * 7) % 1009) {
      const part = speech.subarray(from, from + size);
      meter.add(part, part.length);
    }
    expect(meter.levelDbov).toBe(measured(speech).levelDbov);
  });

  it('reports silence for silence and very short input', () => {
    expect(measured(new Float32Array(RATE_HZ)).levelDbov).toBe(SILENCE_DBOV);
    expect(measured(new Float32Array(0)).levelDbov).toBe(SILENCE_DBOV);
    expect(measured(Float32Array.of(1)).levelDbov).toBe(SILENCE_DBOV);
    expect(measured(new Float32Array(0)).activity).toBe(0);
  });
});

function measured(samples: Float32Array): ActiveSpeechLevel {
  const meter = new ActiveSpeechLevel(RATE_HZ);
  meter.add(samples, samples.length);
  return meter;
}

function tone(seconds: number, dbov: number): Float32Array {
  const peak = Math.SQRT2 * 10 ** (dbov / 20);
  return Float32Array.from({ length: seconds * RATE_HZ }, (_, i) => peak * Math.sin((2 * Math.PI * 500 * i) / RATE_HZ));
}

/** Uniform from -1 to 1. */
function pseudoRandom(i: number): number {
  const value = Math.sin(i * 12.9898 + 78.233) * 43758.5453;
  return 2 * (value - Math.floor(value)) - 1;
}

/** Noise whose level varies by 40 dB, like speech. */
function babble(seed: number): Float32Array {
  let levelDb = -30;
  return Float32Array.from({ length: RATE_HZ * 12 }, (_, i) => {
    if (i % 800 === 0) levelDb = -30 + 20 * pseudoRandom(seed * 1000 + i / 800);
    return 10 ** (levelDb / 20) * pseudoRandom(seed * 1e6 + i);
  });
}

/** Literal clause 5, with dB interpolation between thresholds. */
function byTheBook(samples: Float32Array): number {
  const g = Math.exp(-1 / (RATE_HZ * 0.03));
  const hangover = Math.ceil(0.2 * RATE_HZ);
  const counts = Array.from({ length: 15 }, () => ({ a: 0, h: hangover }));
  let [p, q, energy] = [0, 0, 0];
  for (const sample of samples) {
    energy += sample ** 2;
    p = g * p + (1 - g) * Math.abs(sample);
    q = g * q + (1 - g) * p;
    counts.forEach((count, j) => {
      if (q >= 2 ** (j - 15)) {
        count.a += 1;
        count.h = 0;
      } else if (count.h < hangover) {
        count.a += 1;
        count.h += 1;
      }
    });
  }
  const levels = counts.map(({ a }, j) => {
    const level = 10 * Math.log10(energy / a);
    return { level, above: level - 20 * Math.log10(2 ** (j - 15)) - 15.9 };
  });
  const after = levels.findIndex(({ above }) => above <= 0);
  const [upper, lower] = [levels[after - 1]!, levels[after]!];
  return upper.level + (upper.above / (upper.above - lower.above)) * (lower.level - upper.level);
}
