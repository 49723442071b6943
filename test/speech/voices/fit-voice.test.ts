import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEspeakEngine } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import type { AvailableVoice } from '../../../speech/speech-synthesis.ts';
import { deliveryOf } from '../../../speech/synthesis/delivery.ts';
import type { Clause, Synthesizer } from '../../../speech/synthesizer.ts';
import { NEUTRAL_PROSODY } from '../../../speech/text/script.ts';
import { espeakMeasures } from '../../../speech/voices/espeak-measures.ts';
import { cloneRecipe, fitVoice } from '../../../speech/voices/fit-voice.ts';
import { measureVoice } from '../../../speech/voices/measure-voice.ts';
import { passageFor } from '../../../speech/voices/passages.ts';
import type { VoiceMeasures } from '../../../speech/voices/voice-measures.ts';
import { USUAL_STYLE, type VoiceRecipe } from '../../../speech/voices/voice-recipe.ts';

const PASSAGE = passageFor('en-us');
const { signal } = new AbortController();
let synthesizer: Synthesizer;
let available: AvailableVoice[];

beforeAll(async () => {
  const engine = createEspeakEngine({ processes: 1 });
  available = (await engine.voices()).map((voice) => ({ ...voice, engine: 'espeak-ng' }));
  synthesizer = await engine.start({ model: 'espeak-ng', signal });
});

afterAll(() => synthesizer.close());

describe('fitted voice', () => {
  it.each([
    { voice: 'en-us+m3', speed: 0.8, pitchSemitones: 2, pitchRange: 1.4 },
    { voice: 'en-us+f2', speed: 1.2, pitchSemitones: -3, pitchRange: 0.6 },
    { voice: 'en-us+m1', speed: 0.7, pitchSemitones: -2, pitchRange: 1 },
  ])('matches pitch, range and speed of $voice, changed', async (changes) => {
    const speaker = await spoken(changes);
    const recipe = fitVoice(speaker, { language: 'en', available })!;
    const fitted = await delivered(recipe);
    expect(Math.abs(12 * Math.log2(fitted.pitchHz! / speaker.pitchHz!))).toBeLessThan(0.8);
    expect(fitted.pitchRangeSemitones! / speaker.pitchRangeSemitones!).toBeGreaterThan(0.7);
    expect(fitted.pitchRangeSemitones! / speaker.pitchRangeSemitones!).toBeLessThan(1.4);
    expect(fitted.wordsPerMinute! / speaker.wordsPerMinute!).toBeGreaterThan(0.93);
    expect(fitted.wordsPerMinute! / speaker.wordsPerMinute!).toBeLessThan(1.07);
  });

  it('derives the speed from syllables without a word count', async () => {
    const speaker = await spoken({ voice: 'en-us+m3', speed: 0.75, pitchSemitones: 0, pitchRange: 1 });
    const recipe = fitVoice({ ...speaker, wordsPerMinute: null }, { language: 'en', available })!;
    expect(recipe.character.wordsPerMinute! / speaker.wordsPerMinute!).toBeGreaterThan(0.8);
    expect(recipe.character.wordsPerMinute! / speaker.wordsPerMinute!).toBeLessThan(1.2);
  });

  it('selects the voice of the recording', () => {
    for (const name of ['en-us+f2', 'en-us+f5', 'en-us+m7', 'de+f2', 'hi+m3']) {
      const language = name.split('+')[0]!;
      expect(fitVoice(espeakMeasures(name)!, { language, available })!.engineVoice).toBe(name);
    }
  });

  it('selects a female voice for high pitch and a male one for low pitch', () => {
    for (const language of ['en', 'de', 'hi', 'ta', 'sw', 'ja']) {
      expect(fitVoice(person(215), { language, available })!.engineVoice).toMatch(/\+f/);
      expect(fitVoice(person(105), { language, available })!.engineVoice).not.toMatch(/\+f/);
    }
  });

  it('uses the requested dialect', () => {
    expect(fitVoice(person(110), { language: 'en-gb', available })!.language).toBe('en-gb');
    expect(fitVoice(person(110), { language: 'pt-br', available })!.language).toBe('pt-br');
    expect(fitVoice(person(110), { language: 'zz', available })).toBeNull();
    expect(fitVoice(person(110), { language: 'en', available: [] })).toBeNull();
  });

  it('clamps implausible measures', () => {
    const odd: VoiceMeasures = {
      wordsPerMinute: 9000,
      syllablesPerSecond: 90,
      pitchHz: 4000,
      pitchRangeSemitones: 70,
      levelDbov: 0,
      spectrumDb: [],
    };
    expect(fitVoice(odd, { language: 'en', available })!.character).toMatchObject({
      wordsPerMinute: 400,
      pitchSemitones: 12,
      pitchRange: 3,
      levelDb: 3,
      spectrumDb: [],
    });
    const nothing = {
      ...odd,
      wordsPerMinute: null,
      syllablesPerSecond: null,
      pitchHz: null,
      pitchRangeSemitones: null,
    };
    expect(fitVoice(nothing, { language: 'en', available })!.character).toMatchObject({
      wordsPerMinute: null,
      pitchSemitones: 0,
      pitchRange: 1,
    });
  });

  it('prefers voices that it can shape, and leaves those of other engines unshaped', () => {
    const amy: AvailableVoice = {
      engine: 'sherpa-onnx',
      model: 'amy',
      name: 'amy',
      language: 'en-us',
      gender: 'female',
      clones: false,
    };
    expect(fitVoice(person(215), { language: 'en', available: [...available, amy] })!.engine).toBe('espeak-ng');
    expect(fitVoice(person(215), { language: 'en', available: [amy] })).toMatchObject({
      engineVoice: 'amy',
      own: null,
      character: { pitchSemitones: 0, spectrumDb: null },
    });
  });

  it('takes the sound of a clone from the reference and the speed from the speaker', () => {
    const cloner = {
      ...available[0]!,
      engine: 'sherpa-onnx',
      name: 'zipvoice',
      model: 'zipvoice',
      clones: true,
    } as const;
    const reference = { path: 'voice.wav', text: 'What was said.' };
    const recipe = cloneRecipe(cloner, { measures: person(120), language: 'en', reference });
    expect(recipe).toMatchObject({ engineVoice: 'zipvoice', language: 'en', reference, own: null });
    expect(recipe.character).toMatchObject({ wordsPerMinute: 150, pitchSemitones: 0, spectrumDb: null });
  });
});

function person(pitchHz: number): VoiceMeasures {
  const own = espeakMeasures(pitchHz > 160 ? 'en-us+f2' : 'en-us+m3')!;
  return { ...own, pitchHz, wordsPerMinute: 150, pitchRangeSemitones: 6 };
}

async function spoken(how: Pick<Clause, 'voice' | 'speed' | 'pitchSemitones' | 'pitchRange'>): Promise<VoiceMeasures> {
  const words = PASSAGE.text.split(' ').map((word) => ({ written: word, spoken: word, phonemes: null }));
  const blocks: number[] = [];
  for await (const { samples } of synthesizer.speak({ ...how, words, reference: null }, signal))
    blocks.push(...samples);
  return measureVoice(Int16Array.from(blocks), synthesizer.sampleRateHz, { words: PASSAGE.words! });
}

/** As the synthesis thread renders it, without effects. */
function delivered(recipe: VoiceRecipe): Promise<VoiceMeasures> {
  const { engine } = deliveryOf({ recipe, style: USUAL_STYLE, prosody: NEUTRAL_PROSODY, controlsPitch: true });
  return spoken({ ...engine, voice: recipe.engineVoice });
}
