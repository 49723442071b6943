import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { BUNDLED_FFMPEG } from '../../media/audio-file/ffmpeg.ts';
import { G722_SAMPLE_RATE_HZ, G722Decoder, G722Encoder, type G722Mode } from '../../media/codecs/g722.ts';
import { SubBand } from '../../media/codecs/g722-sub-band.ts';
import { tone } from '../../media/dsp/tones.ts';
import { seededRandom } from '../../runtime/seeded-random.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { whiteNoise } from './sounds.ts';
import { syntheticVowel } from './synthetic-vowels.ts';

const SECOND = G722_SAMPLE_RATE_HZ;
const sineOf = (frequencyHz: number, levelDbfs: number): Int16Array =>
  tone({ frequenciesHz: [frequencyHz], durationMs: 1000, levelDbfs, sampleRateHz: SECOND });

/** Sounds whose bands fit into 15 bits, where ffmpeg's encoder follows the recommendation. */
const SOUNDS: Record<string, () => Int16Array> = {
  silence: () => new Int16Array(SECOND),
  'the smallest steps': () => Int16Array.from(seeded(SECOND, 5), (value) => (value < 0.5 ? -1 : 1)),
  'a tone in the lower band': () => sineOf(1000, -10),
  'a tone in the higher band': () => sineOf(6300, -10),
  'a tone at the edge of the bands': () => sineOf(4000, -10),
  'a sine near full scale': () => sineOf(440, -1),
  'a sweep': () => Int16Array.from({ length: SECOND }, (_, i) => 16_000 * Math.sin((Math.PI * i * i) / (2 * SECOND))),
  'quiet noise': () => Int16Array.from(whiteNoise(SECOND, 60, 1)),
  'loud noise': () => Int16Array.from(whiteNoise(SECOND, 6000, 2)),
  'a vowel': () => {
    const vowel = syntheticVowel({ sampleRateHz: SECOND, seconds: 1, hzAt: (s) => 110 + 60 * s });
    return Int16Array.from(vowel, (sample) => 20_000 * sample);
  },
};

describe('G.722 compared with ffmpeg', () => {
  /** Encodes all sounds at once, since starting ffmpeg is slow. */
  let theirs: { octets: Uint8Array; samples: Int16Array };
  const sounds = Object.values(SOUNDS).map((sound) => sound());
  const all = Int16Array.from(sounds.flatMap((samples) => [...samples]));
  const octets = encoded(all);
  const samples = decoded(octets);

  beforeAll(() => {
    theirs = { octets: ffmpegEncoded(all), samples: ffmpegDecoded(octets, 1) };
  });

  it.each(Object.keys(SOUNDS))('encodes %s to the same octets and decodes them to the same samples', (name) => {
    const index = Object.keys(SOUNDS).indexOf(name);
    const from = sounds.slice(0, index).reduce((sum, { length }) => sum + length, 0);
    const to = from + sounds[index]!.length;
    expect(differences(octets.subarray(from / 2, to / 2), theirs.octets.subarray(from / 2, to / 2))).toBe(0);
    expect(differences(samples.subarray(from, to), theirs.samples.subarray(from, to))).toBe(0);
  });

  it('produces the same number of octets and samples', () => {
    expect([theirs.octets.length, theirs.samples.length]).toEqual([octets.length, samples.length]);
  });

  it.each([1, 2, 3] as const)('decodes random bits in mode %i to the same samples, including overflows', (mode) => {
    const octets = Uint8Array.from(seeded(SECOND / 2, mode), (value) => 256 * value);
    expect(differences(decoded(octets, mode), ffmpegDecoded(octets, mode))).toBe(0);
  });
});

/** SHA-256 of the ITU words between resets: codes of T2R2.COD; samples of T3L2.RC1 and T3H2.RC0 as 15 bits. */
const ITU = {
  codes: '0f92b28fedcb1ff86c25703d6629129de1954bb094be631b53d5922b6801ce6d',
  lower: 'b21afef1767c158aee046a71f3d7776a67433eaca42dbccf03ac012b166695a7',
  higher: '9bb2298ed69ce0af7e2cab46ec431f3f8f9a443104c1813be56a76b6861e0076',
};

describe('G.722 with the overflow sequence of Appendix II', () => {
  /** T1C2.XMT (Table II-3): a full-scale square wave, then one of three values, without the QMF. */
  const input = [
    ...Array.from({ length: 638 }, (_, i) => (i % 2 === 0 ? -16_384 : 16_383)),
    ...[-16_384, 0, -10_000, -8_192],
    ...Array.from({ length: 126 }, (_, i) => (i % 3 === 1 ? 16_383 : -16_384)),
  ];
  const bandsOf = () => [new SubBand(32), new SubBand(8)] as const;

  it('produces the codes and samples of ITU', () => {
    const [low, high] = bandsOf();
    const codes = Uint8Array.from(input, (sample) => (high.encodeHigh(sample) << 6) | low.encodeLow(sample));
    expect(digestOf(codes)).toBe(ITU.codes);
    const [lowAgain, highAgain] = bandsOf();
    const limited = (sample: number): number => Math.max(-16_384, Math.min(16_383, sample));
    const lower = Int16Array.from(codes, (code) => limited(lowAgain.decodeLow(code & 0x3f, 1)));
    const higher = Int16Array.from(codes, (code) => limited(highAgain.decodeHigh(code >> 6)));
    expect(digestOf(lower)).toBe(ITU.lower);
    expect(digestOf(higher)).toBe(ITU.higher);
  });
});

describe('G.722 codec', () => {
  it('keeps the level of a tone in either band', () => {
    for (const frequencyHz of [300, 1000, 3000, 5000, 6500]) {
      const received = decoded(encoded(sineOf(frequencyHz, -10))).subarray(SECOND / 2);
      const level = toneLevelDbov(received, frequencyHz, SECOND);
      expect(level, `${frequencyHz} Hz`).toBeGreaterThan(-14);
      expect(level, `${frequencyHz} Hz`).toBeLessThan(-12);
    }
  });

  it('limits the bands of clipped sound to 15 bits without wrap-around', () => {
    // Both bands of a square wave overshoot; without the limits LOWT and HIGHT (clause 5.2.1) the predictor would
    // diverge.
    const square = Int16Array.from({ length: SECOND }, (_, i) => (Math.floor(i / 37) % 2 === 0 ? 32_767 : -32_768));
    const received = decoded(encoded(square));
    let wrong = 0;
    for (let i = 2000; i < SECOND; i++) {
      const isEdge = Math.min((i - 22) % 37, 37 - ((i - 22) % 37)) < 8;
      if (!isEdge && Math.sign(received[i]!) !== Math.sign(square[i - 22]!)) wrong += 1;
    }
    expect(wrong).toBe(0);
  });

  it('never sends a reserved lower-band code', () => {
    fc.assert(
      fc.property(fc.int16Array({ minLength: 2, maxLength: 2000 }), (samples) => {
        for (const octet of encoded(samples)) expect(octet & 0x3f).toBeGreaterThan(3);
      }),
    );
  });

  it('gives the same result for any block sizes', () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.int16Array({ minLength: 800, maxLength: 2000 }), cuts, (samples, sizes) => {
        const even = samples.subarray(0, samples.length & ~1);
        const octets = encoded(even);
        const encoder = new G722Encoder();
        const decoder = new G722Decoder();
        const inPieces = new Uint8Array(octets.length);
        const received = new Int16Array(even.length);
        for (let at = 0, i = 0; at < octets.length; i++) {
          const count = Math.min(sizes[i % sizes.length]!, octets.length - at);
          expect(encoder.encode(even.subarray(2 * at, 2 * (at + count)), inPieces, at)).toBe(count);
          expect(decoder.decode(inPieces, received.subarray(2 * at), at, at + count)).toBe(2 * count);
          at += count;
        }
        expect(differences(inPieces, octets)).toBe(0);
        expect(differences(received, decoded(octets))).toBe(0);
      }),
    );
  });

  it('restarts after a reset', () => {
    const vowel = SOUNDS['a vowel']!();
    const encoder = new G722Encoder();
    const decoder = new G722Decoder();
    const once = [new Uint8Array(SECOND / 2), new Uint8Array(SECOND / 2)];
    const received = [new Int16Array(SECOND), new Int16Array(SECOND)];
    for (const round of [0, 1]) {
      encoder.encode(vowel, once[round]!);
      decoder.decode(once[round]!, received[round]!);
      encoder.reset();
      decoder.reset();
    }
    expect(differences(once[0]!, once[1]!)).toBe(0);
    expect(differences(received[0]!, received[1]!)).toBe(0);
  });

  it('fills up to the shorter buffer and ignores an odd last sample', () => {
    expect(new G722Encoder().encode(new Int16Array(11), new Uint8Array(9))).toBe(5);
    expect(new G722Encoder().encode(new Int16Array(40), new Uint8Array(9), 5)).toBe(4);
    expect(new G722Encoder().encode(new Int16Array(40), new Uint8Array(9), 12)).toBe(0);
    expect(new G722Decoder().decode(new Uint8Array(9), new Int16Array(7))).toBe(6);
    expect(new G722Decoder().decode(new Uint8Array(9), new Int16Array(40), 4)).toBe(10);
  });
});

function digestOf(words: Uint8Array | Int16Array): string {
  return createHash('sha256').update(words).digest('hex');
}

function encoded(samples: Int16Array): Uint8Array {
  const octets = new Uint8Array(samples.length >> 1);
  new G722Encoder().encode(samples, octets);
  return octets;
}

function decoded(octets: Uint8Array, mode: G722Mode = 1): Int16Array {
  const samples = new Int16Array(2 * octets.length);
  new G722Decoder(mode).decode(octets, samples);
  return samples;
}

function seeded(count: number, seed: number): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, random);
}

/** Number of differing values, plus the difference in length. */
function differences(ours: Int16Array | Uint8Array, theirs: Int16Array | Uint8Array): number {
  let count = Math.abs(ours.length - theirs.length);
  for (let i = 0; i < Math.min(ours.length, theirs.length); i++) if (ours[i] !== theirs[i]) count += 1;
  return count;
}

function ffmpegEncoded(samples: Int16Array): Uint8Array {
  const raw = ['-f', 's16le', '-ar', String(SECOND), '-ac', '1'];
  return ffmpeg(Buffer.from(samples.buffer), raw, ['-c:a', 'g722', '-f', 'g722']);
}

function ffmpegDecoded(octets: Uint8Array, mode: G722Mode): Int16Array {
  const bytes = ffmpeg(octets, ['-bits_per_codeword', String(9 - mode), '-f', 'g722'], ['-f', 's16le']);
  return Int16Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i));
}

function ffmpeg(input: Uint8Array, inputOptions: readonly string[], outputOptions: readonly string[]): Buffer {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'tandem-g722-'));
  const path = join(folder.path, 'input');
  writeFileSync(path, input);
  const [program, ...args] = BUNDLED_FFMPEG.command;
  return execFileSync(
    program!,
    [...args, '-hide_banner', '-loglevel', 'quiet', ...inputOptions, '-i', `file:${path}`, ...outputOptions, 'pipe:1'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
}
