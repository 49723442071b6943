import { expect, it } from 'vitest';
import type { AvailableVoice } from '../../../speech/speech-synthesis.ts';
import { createVoiceCatalogue } from '../../../speech/voices/built-in-voices.ts';
import { OPENAI_VOICE_NAMES } from '../../../speech/voices/catalogue.ts';
import { ESPEAK_CHARACTERS } from '../../../speech/voices/espeak-characters.ts';

const voice = (engine: AvailableVoice['engine'], name: string, language: string, gender: AvailableVoice['gender']) => ({
  ...{ engine, name, language, gender, model: 'model', clones: false },
});
const espeak = [...new Set(ESPEAK_CHARACTERS.map(({ base }) => base))].map((base) =>
  voice('espeak-ng', base, base, null),
);
const catalogue = createVoiceCatalogue(espeak, { preferred: 'auto' });

it('maps each OpenAI name to an English voice, twelve of them different', () => {
  const found = OPENAI_VOICE_NAMES.map((name) => catalogue.find(name));
  expect(found.map((one) => one?.language)).toEqual(OPENAI_VOICE_NAMES.map(() => 'en'));
  expect(new Set(found.map((one) => one?.id)).size).toBe(12);
});

it('keeps the gender for names in any case', () => {
  const genderOf = (name: string) => catalogue.find(name)?.gender;
  expect(['alloy', 'Nova', 'SHIMMER'].map(genderOf)).toEqual(['female', 'female', 'female']);
  expect(['echo', 'Onyx', 'FABLE'].map(genderOf)).toEqual(['male', 'male', 'male']);
});

it('selects a voice that reads the script of the text', () => {
  expect(catalogue.find('alloy', 'नमस्ते')).toMatchObject({ language: 'hi', gender: 'female' });
  expect(catalogue.find('onyx', 'नमस्ते')).toMatchObject({ language: 'hi', gender: 'male' });
});

it('prefers installed models and voices of the same name', () => {
  const kokoro = [
    voice('sherpa-onnx', 'af_bella', 'en-us', 'female'),
    voice('sherpa-onnx', 'af_alloy', 'en-us', 'female'),
    voice('sherpa-onnx', 'am_adam', 'en-us', 'male'),
  ];
  const both = createVoiceCatalogue([...espeak, ...kokoro], { preferred: 'auto' });
  const nameOf = (name: string) => both.find(name)?.name;
  expect(['alloy', 'shimmer', 'nova', 'verse'].map(nameOf)).toEqual(['af_alloy', 'af_alloy', 'af_alloy', 'am_adam']);
  const server = createVoiceCatalogue([...espeak, voice('openai', 'alloy', 'en', null)], { preferred: 'auto' });
  expect(server.find('alloy')?.recipe.engine).toBe('openai');
});

it('returns nothing for other names', () => {
  expect([catalogue.find('jazz'), catalogue.find('__proto__')]).toEqual([null, null]);
  expect(createVoiceCatalogue([], { preferred: 'auto' }).find('alloy')?.recipe.engineVoice).toBe('en-us');
});
