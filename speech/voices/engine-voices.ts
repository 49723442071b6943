import type { AvailableVoice } from '../speech-synthesis.ts';
import type { CatalogueVoice } from './catalogue.ts';
import { dialectName, languageCode, languageName } from './language-names.ts';
import { voiceId } from './voice-id.ts';
import { recipeOf } from './voice-recipe.ts';

/** Voices of configured models and servers, under their own names. Excludes those that only clone. */
export function otherEnginesVoices(available: readonly AvailableVoice[]): readonly CatalogueVoice[] {
  return available.filter(({ clones }) => !clones).map(voiceOf);
}

function voiceOf(voice: AvailableVoice): CatalogueVoice {
  const { engine, name, language, gender } = voice;
  const code = languageCode(language);
  return {
    id: voiceId(`${engine}:${name}`),
    name: name.slice(0, MOST_NAME_CHARACTERS),
    shortNames: [name],
    tier: 'quality',
    language: code,
    languageName: languageName(code),
    gender,
    accent: accentOf(language),
    age: null,
    description: `${name} in ${dialectName(language)}, a voice of ${MAKERS[engine]}.`,
    categories: ['Conversational', 'IVR/Call Center'],
    recipe: recipeOf(voice),
  };
}

const MOST_NAME_CHARACTERS = 100;

const MAKERS: Record<AvailableVoice['engine'], string> = {
  'espeak-ng': 'eSpeak NG',
  'sherpa-onnx': 'a model in the models directory, spoken by sherpa-onnx',
  openai: 'the configured speech server',
};

function accentOf(tag: string): CatalogueVoice['accent'] {
  if (tag === 'en-us') return 'American';
  if (tag === 'en-gb') return 'British';
  return tag.endsWith('-in') ? 'Indian' : 'Neutral';
}
