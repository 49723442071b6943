import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEspeakEngine } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import { deliveryOf } from '../../../speech/synthesis/delivery.ts';
import type { Synthesizer } from '../../../speech/synthesizer.ts';
import { NEUTRAL_PROSODY } from '../../../speech/text/script.ts';
import { createVoiceCatalogue } from '../../../speech/voices/built-in-voices.ts';
import { calibrateVoice } from '../../../speech/voices/calibrate.ts';
import type { CatalogueVoice, VoiceCatalogue } from '../../../speech/voices/catalogue.ts';
import { espeakMeasures } from '../../../speech/voices/espeak-measures.ts';
import { measureVoice } from '../../../speech/voices/measure-voice.ts';
import { passageFor } from '../../../speech/voices/passages.ts';
import type { VoiceMeasures } from '../../../speech/voices/voice-measures.ts';
import { USUAL_STYLE } from '../../../speech/voices/voice-recipe.ts';

const { signal } = new AbortController();
let synthesizer: Synthesizer;
let catalogue: VoiceCatalogue;

beforeAll(async () => {
  const engine = createEspeakEngine({ processes: 1 });
  const voices = await engine.voices();
  catalogue = createVoiceCatalogue(
    voices.map((voice) => ({ ...voice, engine: 'espeak-ng' })),
    { preferred: 'auto' },
  );
  synthesizer = await engine.start({ model: 'espeak-ng', signal });
});

afterAll(() => synthesizer.close());

describe('stored measures of eSpeak NG voices', () => {
  it.each([
    ['en-us', 'en-us'],
    ['hi+f2', 'hi'],
    ['de+m3', 'de'],
    ['ja', 'ja'],
  ])('match a new measurement of %s', async (voice, language) => {
    const now = await calibrateVoice(synthesizer, { voice, language }, signal);
    const kept = espeakMeasures(voice)!;
    if (kept.wordsPerMinute === null) expect(now.wordsPerMinute).toBeNull();
    else expect(now.wordsPerMinute! / kept.wordsPerMinute).toBeCloseTo(1, 1);
    expect(now.pitchHz! / kept.pitchHz!).toBeCloseTo(1, 1);
    expect(Math.abs(now.pitchRangeSemitones! - kept.pitchRangeSemitones!)).toBeLessThan(0.5);
    expect(now.syllablesPerSecond! / kept.syllablesPerSecond!).toBeCloseTo(1, 0);
    expect(Math.abs(now.levelDbov - kept.levelDbov)).toBeLessThan(1);
    for (const [band, level] of now.spectrumDb.entries()) {
      expect(Math.abs(level - kept.spectrumDb[band]!)).toBeLessThan(3);
    }
  });

  it('approximate a variant in an unmeasured language', async () => {
    const now = await calibrateVoice(synthesizer, { voice: 'it+f4', language: 'it' }, signal);
    const taken = espeakMeasures('it+f4')!;
    expect(now.pitchHz! / taken.pitchHz!).toBeCloseTo(1, 1);
    expect(now.wordsPerMinute! / taken.wordsPerMinute!).toBeCloseTo(1, 1);
    expect(Math.abs(now.levelDbov - taken.levelDbov)).toBeLessThan(2);
    expect(espeakMeasures('it+robot')).toBeNull();
    expect(espeakMeasures('nobody')).toBeNull();
  });
});

describe('measured catalogue', () => {
  it('separates women and men of each language by pitch', () => {
    expect(catalogue.languages().length).toBeGreaterThan(0);
    for (const { language } of catalogue.languages()) {
      const ofLanguage = catalogue.list('quality').filter((voice) => voice.language === language);
      const women = ofLanguage.filter(({ gender }) => gender === 'female').map(pitchOf);
      const men = ofLanguage.filter(({ gender }) => gender === 'male').map(pitchOf);
      expect(Math.min(...women) / Math.max(...men), language).toBeGreaterThan(1.35);
      for (const pitch of women) expect(pitch, language).toBeGreaterThan(145);
      for (const pitch of men) expect(pitch, language).toBeLessThan(150);
    }
  });

  it('assigns each named voice a comfortable measured speed', () => {
    expect(catalogue.list('quality').length).toBeGreaterThan(0);
    expect(catalogue.list('fast').length).toBeGreaterThan(0);
    for (const { recipe, shortNames } of catalogue.list('quality')) {
      expect(recipe.own, shortNames[0]).not.toBeNull();
      // Words are long in Odia and short in Vietnamese.
      expect(recipe.character.wordsPerMinute, shortNames[0]).toBeGreaterThanOrEqual(70);
      expect(recipe.character.wordsPerMinute, shortNames[0]).toBeLessThanOrEqual(230);
    }
    for (const { recipe } of catalogue.list('fast')) expect(recipe.own, recipe.engineVoice).not.toBeNull();
  });

  it.each(['en-us', 'en-us-emily', 'en-gb-x-rp-arthur', 'hi-arjun', 'ta-nila', 'es-419-valentina', 'vi-linh'])(
    'lists the actual default speed of %s',
    async (name) => {
      const voice = catalogue.find(name)!;
      const spoken = await speakWithDefaults(voice);
      expect(spoken.wordsPerMinute! / voice.recipe.character.wordsPerMinute!).toBeGreaterThan(0.93);
      expect(spoken.wordsPerMinute! / voice.recipe.character.wordsPerMinute!).toBeLessThan(1.07);
    },
  );
});

function pitchOf({ recipe: { own, character } }: CatalogueVoice): number {
  return own!.pitchHz! * 2 ** (character.pitchSemitones / 12);
}

async function speakWithDefaults({ recipe }: CatalogueVoice): Promise<VoiceMeasures> {
  const { engine } = deliveryOf({ recipe, style: USUAL_STYLE, prosody: NEUTRAL_PROSODY, controlsPitch: true });
  const { text, words } = passageFor(recipe.language);
  const clause = {
    ...engine,
    words: text.split(' ').map((word) => ({ written: word, spoken: word, phonemes: null })),
    voice: recipe.engineVoice,
    reference: null,
  };
  const samples: number[] = [];
  for await (const block of synthesizer.speak(clause, signal)) samples.push(...block.samples);
  return measureVoice(Int16Array.from(samples), synthesizer.sampleRateHz, { words: words! });
}
