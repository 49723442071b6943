import { beforeAll, describe, expect, it } from 'vitest';
import { createEspeakEngine } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import type { AvailableVoice } from '../../../speech/speech-synthesis.ts';
import { createVoiceCatalogue } from '../../../speech/voices/built-in-voices.ts';
import type { CatalogueVoice, VoiceCatalogue } from '../../../speech/voices/catalogue.ts';
import { BAND_CENTRES_HZ } from '../../../speech/voices/voice-measures.ts';

let espeak: AvailableVoice[];
let catalogue: VoiceCatalogue;
let everyVoice: CatalogueVoice[];

beforeAll(async () => {
  const voices = await createEspeakEngine({ processes: 1 }).voices();
  espeak = voices.map((voice) => ({ ...voice, engine: 'espeak-ng' }));
  catalogue = createVoiceCatalogue(espeak, { preferred: 'auto' });
  everyVoice = [...catalogue.list('fast'), ...catalogue.list('quality')];
});

describe('eSpeak NG voice catalogue', () => {
  it('offers a plain voice for every language and dialect of the engine', () => {
    expect(catalogue.list('fast').length).toBe(espeak.length - 1);
    expect(catalogue.list('fast').length).toBeGreaterThan(130);
  });

  it('offers a woman and a man in each reported language', () => {
    expect(catalogue.languages().length).toBe(36);
    for (const { language } of catalogue.languages()) {
      const genders = catalogue
        .list('quality')
        .filter((voice) => voice.language === language)
        .map(({ gender }) => gender);
      expect(genders, language).toContain('female');
      expect(genders, language).toContain('male');
    }
  });

  it('uses only voices and variants of the engine', () => {
    const names = new Set(espeak.map(({ name }) => name));
    for (const { recipe, shortNames } of everyVoice) {
      expect(names, shortNames[0]).toContain(recipe.engineVoice.split('+')[0]);
      expect(recipe.engineVoice, shortNames[0]).toMatch(/^[^+]+(\+[fm][1-8])?$/);
    }
  });

  it('assigns unique ids and names', () => {
    const ids = everyVoice.map(({ id }) => id);
    const names = everyVoice.flatMap(({ shortNames }) => shortNames);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(names).size).toBe(names.length);
    for (const id of ids) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  });

  it('finds each voice by id and by every name, ignoring case', () => {
    for (const voice of everyVoice) {
      for (const name of [voice.id, ...voice.shortNames]) {
        expect(catalogue.find(name)?.id).toBe(voice.id);
        expect(catalogue.find(name.toUpperCase())?.id).toBe(voice.id);
      }
    }
    expect(catalogue.find('nobody')).toBeNull();
    expect(catalogue.find('constructor')).toBeNull();
    expect(catalogue.find('')).toBeNull();
  });

  it.each([
    ['en-us', 'en-us', '8eb23d80-6c9c-84db-b244-5b4092cf5869'],
    ['en-gb', 'en', 'e7db4a96-8466-8da5-b069-b8f0cd6909e6'],
    ['en-gb-scotland', 'en-gb-scotland', '81ba764a-d921-87d8-b298-62243986164c'],
    ['hi', 'hi', '57381e49-1558-8505-ab96-3c508f2b87cc'],
    ['es-419', 'es-419', '8327428d-58c0-8d86-9225-31a01ddcc5da'],
    ['fr', 'fr', 'd322d701-0aed-8992-a8f9-206bec5436b3'],
    ['pt-br', 'pt-br', '0182b2a4-5fa7-8edd-84a1-2aaa692d5f59'],
    ['el', 'el', '2c974889-db5a-8219-81e3-af036412561a'],
  ])('finds %s by its stable id', (name, engineVoice, id) => {
    expect(catalogue.find(name)).toMatchObject({ id, recipe: { engineVoice } });
  });

  it('defaults to American English, even without an engine', () => {
    expect(catalogue.usual.recipe.engineVoice).toBe('en-us');
    const empty = createVoiceCatalogue([], { preferred: 'auto' });
    expect(empty.usual.id).toBe(catalogue.usual.id);
    expect(empty.list('quality')).toEqual([]);
    expect(empty.list('fast')).toEqual([]);
    expect(empty.languages()).toEqual([]);
  });

  it('describes every voice with name, description and spectrum', () => {
    for (const { name, description, languageName, categories, recipe } of everyVoice) {
      expect(name).toMatch(/^\p{Lu}/u);
      expect(languageName, recipe.engineVoice).toMatch(/^\p{Lu}/u);
      expect(description).toContain('eSpeak NG');
      expect(categories.length).toBeGreaterThan(0);
      const spectrum = recipe.character.spectrumDb;
      if (spectrum !== null) expect(spectrum.length).toBe(BAND_CENTRES_HZ.length);
    }
  });
});

describe('voice catalogue with other engines', () => {
  const amy = other('sherpa-onnx', 'vits-piper-en_US-amy-low', 'en-us', 'female');
  const thorsten = other('sherpa-onnx', 'vits-piper-de_DE-thorsten', 'de-de', 'male');
  const alloy = other('openai', 'alloy', 'en', null);
  const cloner = { ...other('sherpa-onnx', 'zipvoice', 'en-us', null), clones: true };

  it('lists their voices in the quality tier, with additional languages', () => {
    const filipino = other('sherpa-onnx', 'mms-fil', 'fil', null);
    const both = createVoiceCatalogue([...espeak, amy, filipino], { preferred: 'auto' });
    expect(both.find('VITS-piper-en_US-amy-low')).toMatchObject({
      tier: 'quality',
      gender: 'female',
      accent: 'American',
    });
    expect(both.list('quality')[0]!.recipe.engine).toBe('sherpa-onnx');
    expect(both.languages()).toContainEqual({ language: 'fil', name: 'Filipino' });
  });

  it('prefers an installed English voice as default, otherwise eSpeak NG', () => {
    expect(usualOf([...espeak, thorsten, amy]).recipe.engineVoice).toBe('vits-piper-en_US-amy-low');
    expect(usualOf([...espeak, thorsten]).recipe.engineVoice).toBe('en-us');
    expect(usualOf([...espeak, amy], 'espeak-ng').recipe.engineVoice).toBe('en-us');
    expect(usualOf([...espeak, amy, alloy], 'openai').recipe.engineVoice).toBe('alloy');
    expect(usualOf([...espeak, thorsten], 'sherpa-onnx').recipe.engineVoice).toBe('vits-piper-de_DE-thorsten');
    expect(usualOf([thorsten]).recipe.engineVoice).toBe('vits-piper-de_DE-thorsten');
  });

  it.each([
    ['నమస్కారం, మీ ఆర్డర్ వచ్చింది', 'te'],
    ['<speak>नमस्ते <break time="300ms"/></speak>', 'hi'],
    ['Ваш заказ в пути', 'ru'],
    ['ご注文は4711番です', 'ja'],
    ['明日東京駅前集合です', 'ja'],
    ['カタカナ、ひらがな', 'ja'],
    ['我在日本买了一瓶名叫鲜の每日的绿茶饮料', 'cmn'],
    ['Your order', 'en-us'],
    ['Order नमस्ते has shipped', 'en-us'],
    ['4711', 'en-us'],
  ])('reads %j without a voice with %s', (text, engineVoice) => {
    expect(createVoiceCatalogue(espeak, { preferred: 'auto' }).usualFor(text).recipe.engineVoice).toBe(engineVoice);
  });

  it('prefers a model voice for a script', () => {
    const telugu = other('sherpa-onnx', 'vits-te', 'te', null);
    const { recipe } = createVoiceCatalogue([...espeak, telugu], { preferred: 'auto' }).usualFor('నమస్కారం');
    expect(recipe.engine).toBe('sherpa-onnx');
  });

  it('omits voices that only clone', () => {
    expect(createVoiceCatalogue([cloner], { preferred: 'auto' }).list('quality')).toEqual([]);
  });

  it('prevents model voices from taking names of others', () => {
    const squatter = createVoiceCatalogue([...espeak, other('sherpa-onnx', 'en-us', 'en-us', null)], {
      preferred: 'auto',
    });
    expect(squatter.find('en-us')!.recipe.engine).toBe('espeak-ng');
  });

  function usualOf(voices: AvailableVoice[], preferred: 'auto' | AvailableVoice['engine'] = 'auto'): CatalogueVoice {
    return createVoiceCatalogue(voices, { preferred }).usual;
  }
});

function other(
  engine: AvailableVoice['engine'],
  name: string,
  language: string,
  gender: AvailableVoice['gender'],
): AvailableVoice {
  return { engine, model: name, name, language, gender, clones: false };
}
