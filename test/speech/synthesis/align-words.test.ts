import { describe, expect, it } from 'vitest';
import { alignWords } from '../../../speech/synthesis/align-words.ts';
import { SoundDetector } from '../../../speech/synthesis/sounds.ts';
import type { ScriptWord } from '../../../speech/text/script.ts';
import * as fc from '../../properties.ts';

const words = (text: string): ScriptWord[] =>
  text.split(' ').map((written) => ({ written, spoken: written, phonemes: null }));

describe('synthesis word times', () => {
  it('follow the marks of the engine', () => {
    const aligned = alignWords({
      words: words('one two three'),
      marks: [
        { word: 0, atMs: 0 },
        { word: 1, atMs: 300 },
        { word: 2, atMs: 500 },
      ],
      sounds: [{ startMs: 0, endMs: 900 }],
      durationMs: 1000,
    });
    expect(aligned).toEqual([
      { word: 'one', startMs: 0, endMs: 300 },
      { word: 'two', startMs: 300, endMs: 500 },
      { word: 'three', startMs: 500, endMs: 900 },
    ]);
  });

  it('start with the sound next to a mark and end with the last sound before the next word', () => {
    const aligned = alignWords({
      words: words('one two three'),
      marks: [
        { word: 0, atMs: 0 },
        { word: 1, atMs: 390 },
        { word: 2, atMs: 820 },
      ],
      sounds: [
        { startMs: 60, endMs: 300 },
        { startMs: 400, endMs: 600 },
        { startMs: 800, endMs: 1100 },
      ],
      durationMs: 1200,
    });
    expect(aligned.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
      [60, 300],
      [400, 600],
      [800, 1100],
    ]);
  });

  it('divide the sounds by word length without marks', () => {
    const aligned = alignWords({
      words: words('a, elephants, go'),
      marks: [],
      sounds: [
        { startMs: 50, endMs: 130 },
        { startMs: 400, endMs: 1000 },
        { startMs: 1300, endMs: 1500 },
      ],
      durationMs: 1600,
    });
    expect(aligned.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
      [50, 130],
      [400, 1000],
      [1300, 1500],
    ]);
  });

  it('give unspoken words no duration, in any position', () => {
    const aligned = alignWords({
      words: [{ written: '-', spoken: '', phonemes: null }, ...words('yes - no')],
      marks: [
        { word: 1, atMs: 100 },
        { word: 3, atMs: 500 },
      ],
      sounds: [
        { startMs: 100, endMs: 300 },
        { startMs: 500, endMs: 700 },
      ],
      durationMs: 800,
    });
    expect(aligned.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
      [100, 100],
      [100, 300],
      [300, 300],
      [500, 700],
    ]);
  });

  it('ignore marks that are out of order', () => {
    const aligned = alignWords({
      words: words('pay $ 12 now please'),
      marks: [
        { word: 0, atMs: 0 },
        { word: 1, atMs: 800 },
        { word: 2, atMs: 300 },
        { word: 3, atMs: 1000 },
        { word: 4, atMs: 1300 },
      ],
      sounds: [{ startMs: 0, endMs: 1600 }],
      durationMs: 1600,
    });
    expect(aligned.map(({ startMs }) => startMs)).toEqual([0, expect.any(Number), 300, 1000, 1300]);
  });

  it('stay complete, ordered and inside the clause for any marks', () => {
    const word = fc.record({
      written: fc.string({ minLength: 1, maxLength: 8, unit: 'binary' }),
      spoken: fc.oneof(
        fc.constant(''),
        fc.string({ maxLength: 8, unit: 'grapheme' }),
        fc.constant('नमस्ते'),
        fc.constant('IVR'),
      ),
      phonemes: fc.option(fc.constant('həˈləʊ'), { freq: 5 }),
    });
    const time = fc.oneof(
      { weight: 8, arbitrary: fc.double({ min: -100, max: 6000, noNaN: true }) },
      { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY) },
    );
    const edges = fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 20 });
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 12 }),
        fc.array(fc.record({ word: fc.integer({ min: -1, max: 14 }), atMs: time }), { maxLength: 20 }),
        edges,
        fc.integer({ min: 0, max: 5000 }),
        (said, marks, borders, durationMs) => {
          const sorted = [...new Set(borders)].filter((at) => at <= durationMs).sort((a, b) => a - b);
          const sounds = sorted.flatMap((startMs, index) =>
            index % 2 === 0 && index + 1 < sorted.length ? [{ startMs, endMs: sorted[index + 1]! }] : [],
          );
          const aligned = alignWords({ words: said, marks, sounds, durationMs });
          expect(aligned.map(({ word: written }) => written)).toEqual(said.map(({ written }) => written));
          let lastMs = 0;
          for (const { startMs, endMs } of aligned) {
            expect(startMs).toBeGreaterThanOrEqual(lastMs);
            expect(endMs).toBeGreaterThanOrEqual(startMs);
            lastMs = endMs;
          }
          expect(lastMs).toBeLessThanOrEqual(durationMs);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('sound detector', () => {
  it('finds start and end of sounds for any block size', () => {
    fc.assert(
      fc.property(fc.constantFrom(8000, 16_000, 22_050, 24_000), fc.integer({ min: 1, max: 3000 }), (rate, cut) => {
        const samples = new Int16Array(rate);
        const fill = (fromMs: number, toMs: number) => {
          for (let at = (fromMs * rate) / 1000; at < (toMs * rate) / 1000; at++) {
            samples[Math.floor(at)] = at % 2 === 0 ? 9000 : -8000;
          }
        };
        fill(100, 300);
        fill(310, 400);
        fill(700, 850);
        const detector = new SoundDetector(rate);
        for (let start = 0; start < rate; start += cut) detector.add(samples.subarray(start, start + cut));
        const sounds = detector.sounds();
        expect(sounds).toHaveLength(2);
        for (const [index, [startMs, endMs]] of [
          [100, 400],
          [700, 850],
        ].entries()) {
          expect(Math.abs(sounds[index]!.startMs - startMs!)).toBeLessThanOrEqual(5);
          expect(Math.abs(sounds[index]!.endMs - endMs!)).toBeLessThanOrEqual(5);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('finds nothing in silence', () => {
    const detector = new SoundDetector(8000);
    detector.add(new Int16Array(8000).fill(2));
    expect(detector.sounds()).toEqual([]);
  });
});
