import { describe, expect, it } from 'vitest';
import type { AvailableVoice } from '../../../speech/speech-synthesis.ts';
import { createVoiceCatalogue } from '../../../speech/voices/built-in-voices.ts';
import { PLAIN_CHARACTER } from '../../../speech/voices/voice-recipe.ts';

const espeak = (name: string, language = name): AvailableVoice => {
  return { engine: 'espeak-ng', model: 'espeak-ng', name, language, gender: 'male', clones: false };
};
const model = (name: string, language: string, gender: 'female' | 'male'): AvailableVoice => {
  return { engine: 'sherpa-onnx', model: name, name, language, gender, clones: false };
};

const catalogue = createVoiceCatalogue(
  [espeak('en-us'), espeak('en', 'en-gb'), espeak('hi'), espeak('fr-fr'), model('Asha', 'hi-in', 'female')],
  { preferred: 'espeak-ng' },
);
const around = catalogue.find('en-us')!;
const nameOf = (voice: { id: string } | null) => (voice === null ? null : catalogue.find(voice.id)!.shortNames[0]);
const like = (language: string | null, gender: 'female' | 'male' | null = null, from: typeof around = around) =>
  nameOf(catalogue.like({ language, gender, around: from }));

describe('voice for a section of text', () => {
  it('speaks the language, in its dialect if available', () => {
    expect([like('hi'), like('en-gb'), like('fr'), like('fr-ca')]).toEqual(['hi', 'en-gb', 'fr-fr', 'fr-fr']);
    expect(like('hi-in', 'female')).toBe('Asha');
  });

  it('keeps the surrounding voice if that speaks the language', () => {
    expect([like('en-us'), like('en'), like(null)]).toEqual(['en-us', 'en-us', 'en-us']);
    const own = { id: 'custom', recipe: { ...around.recipe, language: 'hi', character: PLAIN_CHARACTER } };
    const kept = catalogue.like({ language: 'hi', gender: null, around: own });
    expect(kept).toBe(own);
  });

  it('follows the requested gender if the language offers it', () => {
    expect(like('hi', 'male')).toBe('hi');
    expect(like('fr', 'female')).toBe('fr-fr');
    const female = catalogue.list('quality').find(({ gender, language }) => gender === 'female' && language === 'en');
    if (female !== undefined) expect(like('en-us', 'female')).toBe(female.shortNames[0]);
  });

  it('does not exist for an unsupported language', () => {
    expect(like('xx')).toBeNull();
  });
});
