import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alignWords } from '../../../speech/engines/espeak-ng/align-words.ts';
import { startEspeak } from '../../../speech/engines/espeak-ng/espeak-synthesizer.ts';
import { BUILT_IN_VOICES } from '../../../speech/synthesis/voices.ts';
import type { Clause, Synthesizer } from '../../../speech/synthesizer.ts';

let espeak: Synthesizer;

beforeAll(async () => {
  espeak = await startEspeak();
});

afterAll(async () => {
  await espeak.close();
});

const speak = (clause: Partial<Clause> = {}) =>
  espeak.speak({
    text: 'Your order is on its way.',
    voice: 'en-us',
    wordsPerMinute: 137,
    format: { encoding: 'LINEAR16', sampleRateHz: 16_000 },
    ...clause,
  });

const SENTENCES = [
  'Hello, world! I have 1,234 dogs & 5% of $12.50.',
  'नमस्ते दुनिया, आप कैसे हैं?',
  'a < b > c &amp; d',
  '😀 - ok',
];

describe('eSpeak NG in a process', () => {
  it.each(BUILT_IN_VOICES.map(({ name, engineName }) => [name, engineName] as const))(
    'speaks with the voice %s, each word inside the audio and in order',
    async (_name, voice) => {
      for (const text of SENTENCES) {
        const { audio, durationMs, words } = await speak({ voice, text });
        expect(durationMs).toBeGreaterThan(100);
        expect(audio.byteLength / 2 / 16_000).toBeCloseTo(durationMs / 1000, 1);
        expect(words.map(({ word }) => word)).toEqual(text.split(' '));
        let lastMs = 0;
        for (const { startMs, endMs } of words) {
          expect(startMs).toBeGreaterThanOrEqual(lastMs);
          expect(endMs).toBeGreaterThanOrEqual(startMs);
          lastMs = endMs;
        }
        expect(lastMs).toBeLessThanOrEqual(durationMs);
      }
    },
  );

  it.each([8000, 22050, 44_100, 48_000])(
    'gives as many samples at %i Hz as the time asks for',
    async (sampleRateHz) => {
      const { audio, durationMs } = await speak({ format: { encoding: 'LINEAR16', sampleRateHz } });
      expect(Math.abs(audio.byteLength / 2 - (durationMs * sampleRateHz) / 1000)).toBeLessThan(3);
    },
  );

  it('speaks faster when it is asked to', async () => {
    const slow = await speak({ wordsPerMinute: 100 });
    const fast = await speak({ wordsPerMinute: 250 });
    expect(slow.durationMs).toBeGreaterThan(1.5 * fast.durationMs);
  });

  it('hands over more than one answer holds', async () => {
    const { audio, durationMs } = await speak({
      text: 'one two three four five six seven eight nine ten '.repeat(5),
      format: { encoding: 'LINEAR16', sampleRateHz: 48_000 },
    });
    expect(audio.byteLength).toBeGreaterThan(1024 * 1024);
    expect(audio.byteLength / 2 / 48_000).toBeCloseTo(durationMs / 1000, 1);
  });

  it('refuses a voice that it does not have, and speaks on', async () => {
    await expect(speak({ voice: 'xx-nobody' })).rejects.toMatchObject({ code: 'unknown_voice', retryable: false });
    expect((await speak()).durationMs).toBeGreaterThan(100);
  });

  it('speaks on after control characters, and takes none for a command', async () => {
    const texts = ['good\0 morning my friend', 'good\u0001200S morning my friend', 'good\u001b morning my friend'];
    for (const text of texts) {
      const { durationMs, words } = await speak({ text });
      const { durationMs: expectedMs } = await speak({ text: text.replace(/\p{Cc}/u, ' ') });
      // Breath is random: some samples more or less.
      expect(Math.abs(durationMs - expectedMs)).toBeLessThan(20);
      expect(words.at(-1)!.endMs - words.at(-1)!.startMs).toBeGreaterThan(100);
    }
  });

  it('refuses what it would speak for minutes, instead of a part of it, and speaks on', async () => {
    const text = '7 '.repeat(1000);
    await expect(speak({ text })).rejects.toMatchObject({ code: 'too_long', retryable: false });
    expect((await speak()).durationMs).toBeGreaterThan(100);
  });

  it('says nothing for what cannot be said', async () => {
    const { words } = await speak({ text: '...' });
    expect(words.map(({ word }) => word)).toEqual(['...']);
  });
});

describe('the times of words', () => {
  it('are complete and in order for any marks', () => {
    const mark = fc.record({ position: fc.integer({ min: -5, max: 60 }), atMs: fc.integer({ min: 0, max: 3000 }) });
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.array(mark), (text, marks) => {
        const words = alignWords(text, { marks, durationMs: 2000 });
        expect(words.map(({ word }) => word)).toEqual(text.split(/\s+/u).filter((word) => word !== ''));
        let lastMs = 0;
        for (const { startMs, endMs } of words) {
          expect(startMs).toBeGreaterThanOrEqual(lastMs);
          expect(endMs).toBeGreaterThanOrEqual(startMs);
          lastMs = endMs;
        }
        expect(lastMs).toBeLessThanOrEqual(2000);
      }),
    );
  });

  it('give a number of several marks its first, and count code points', () => {
    const marks = [
      { position: 0, atMs: 0 },
      { position: 2, atMs: 300 },
      { position: 3, atMs: 400 },
      { position: 6, atMs: 700 },
    ];
    expect(alignWords('😀 42 ok', { marks, durationMs: 1000 })).toEqual([
      { word: '😀', startMs: 0, endMs: 300 },
      { word: '42', startMs: 300, endMs: 700 },
      { word: 'ok', startMs: 700, endMs: 1000 },
    ]);
  });
});
