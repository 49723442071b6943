import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpeechSynthesis } from '../../../speech/speech-synthesis.thread.ts';
import type { SpeechSynthesis } from '../../../speech/speech-synthesis.ts';
import type { SpokenWord } from '../../../speech/synthesizer.ts';
import { readScript } from '../../../speech/text/read-script.ts';
import { passageFor } from '../../../speech/voices/passages.ts';
import { PLAIN_CHARACTER, USUAL_STYLE } from '../../../speech/voices/voice-recipe.ts';
import { isDeep } from '../../properties.ts';

const RATE_HZ = 16_000;
let synthesis: SpeechSynthesis;

beforeAll(async () => {
  const settings = {
    processes: 2,
    modelsDir: join(tmpdir(), 'tandem-no-models'),
    upstream: null,
    cache: { folder: join(tmpdir(), 'tandem-no-cache'), mostBytes: 0 },
  };
  synthesis = await createSpeechSynthesis({ settings });
});

afterAll(async () => {
  await synthesis.close();
});

async function speak(text: string, { voice, language }: { voice: string; language: string }) {
  const recipe = {
    ...({ engine: 'espeak-ng', model: 'espeak-ng', engineVoice: voice, language } as const),
    ...{ own: null, character: PLAIN_CHARACTER, reference: null },
  };
  const request = {
    script: readScript(text, { language }),
    recipe,
    style: { ...USUAL_STYLE, enhance: false },
    format: { encoding: 'LINEAR16', sampleRateHz: RATE_HZ } as const,
  };
  const parts: Uint8Array[] = [];
  const words: SpokenWord[] = [];
  let durationMs = 0;
  for await (const part of synthesis.speak(request, new AbortController().signal)) {
    parts.push(part.audio);
    words.push(...part.words);
    durationMs = part.durationMs;
  }
  const audio = Buffer.concat(parts);
  const samples = new Int16Array(audio.buffer.slice(audio.byteOffset, audio.byteOffset + audio.byteLength));
  const written = request.script.clauses.flatMap((clause) => clause.words.map((word) => word.written));
  return { samples, words, durationMs, written };
}

/** Onsets of sound after 60 ms of silence, in milliseconds: at words and at stops within them. */
function onsetsOf(samples: Int16Array): number[] {
  const hop = RATE_HZ / 200;
  const levels = Array.from({ length: Math.floor(samples.length / hop) }, (_, index) => {
    let energy = 0;
    for (let at = index * hop; at < (index + 1) * hop; at++) energy += samples[at]! ** 2;
    return Math.sqrt(energy / hop);
  });
  const threshold = Math.max(...levels) / 50;
  const onsets: number[] = [];
  let silent = 12;
  for (const [index, level] of levels.entries()) {
    if (level > threshold && silent >= 12) onsets.push(index * 5);
    silent = level > threshold ? 0 : silent + 1;
  }
  return onsets;
}

describe('synthesised word times', () => {
  it.each([
    ['en-us', 'en-us', 'One, two, three, four, apple, pepper, tiger, house, chair, zebra, garden, window.'],
    ['en-us+f3', 'en-us', 'Kitten. Banana. Open. Shelf. Very. Thunder. Doctor. Picture.'],
    ['de', 'de', 'Eins, zwei, drei, vier, Apfel, Tiger, Haus, Garten.'],
    ['es', 'es', 'Uno, dos, tres, cuatro, mesa, perro, casa, tigre.'],
    ['hi', 'hi', 'एक, दो, तीन, चार, पांच, घर, पानी, किताब.'],
  ])('in %s lie within 30 ms of the sound onset of each word', async (voice, language, text) => {
    const { samples, words } = await speak(text, { voice, language });
    const onsets = onsetsOf(samples);
    expect(words.map(({ word }) => word)).toEqual(text.split(' '));
    const nearest = words.map(({ startMs }) =>
      onsets.reduce((best, onset) => (Math.abs(onset - startMs) < Math.abs(best - startMs) ? onset : best)),
    );
    expect(new Set(nearest).size).toBe(words.length);
    for (const [index, { word, startMs }] of words.entries()) {
      expect(Math.abs(startMs - nearest[index]!), `${word} at ${startMs}`).toBeLessThanOrEqual(30);
    }
  });

  it('stay complete, ordered and inside the audio in many languages', async () => {
    const voices = synthesis.voices();
    expect(voices.length).toBeGreaterThan(100);
    const spokenVoices = voices.filter((_, index) => isDeep || index % 4 === 0);
    for (const { name, language } of spokenVoices) {
      const text = `${passageFor(language).text.slice(0, 30)}, 12:30, $5 - ok?`;
      const { samples, words, durationMs, written } = await speak(text, { voice: name, language });
      expect(
        words.map(({ word }) => word),
        name,
      ).toEqual(written);
      expect(Math.abs((samples.length * 1000) / RATE_HZ - durationMs), name).toBeLessThan(1);
      let lastMs = 0;
      for (const { startMs, endMs } of words) {
        expect(startMs, name).toBeGreaterThanOrEqual(lastMs);
        expect(endMs, name).toBeGreaterThanOrEqual(startMs);
        lastMs = endMs;
      }
      expect(lastMs, name).toBeGreaterThan(durationMs / 2);
      expect(lastMs, name).toBeLessThanOrEqual(durationMs);
    }
  }, 120_000);
});
