import type { AvailableVoice } from '../speech-synthesis.ts';
import type { CatalogueVoice } from './catalogue.ts';
import { espeakMeasures } from './espeak-measures.ts';
import { dialectName, languageCode, languageName } from './language-names.ts';
import { voiceId } from './voice-id.ts';
import type { VoiceMeasures } from './voice-measures.ts';
import { PLAIN_CHARACTER, recipeOf } from './voice-recipe.ts';

/** eSpeak NG's unchanged voices, one per language and dialect: the fastest ones. */
export function plainVoices(espeak: readonly AvailableVoice[]): readonly CatalogueVoice[] {
  return espeak
    .filter(({ name }) => !NO_VOICES.test(name))
    .map(plainVoice)
    .toSorted((a, b) => rank(a) - rank(b));
}

/** Comfortable pace as a factor on the engine's own, which is hurried. */
const NATURAL_PACE = 0.8;

/** Variants are for characters, MBROLA voices need another program, and one is a test of a constructed language. */
const NO_VOICES = /\+|^mb[-/]|^mb$|^xex$/i;

/** Languages in most demand come first. */
const FIRST = ['en-us', 'en-gb', 'hi', 'bn', 'ta', 'te', 'mr', 'gu', 'kn', 'ml', 'pa', 'or', 'as', 'ur'];

function rank({ shortNames }: CatalogueVoice): number {
  const index = FIRST.indexOf(shortNames[0]!);
  return index < 0 ? FIRST.length : index;
}

function plainVoice(voice: AvailableVoice): CatalogueVoice {
  const { name } = voice;
  const tag = espeakTag(name);
  const own = espeakMeasures(name);
  const code = languageCode(tag);
  return {
    id: voiceId(`espeak-ng:${tag}`),
    name: dialectName(tag),
    shortNames: tag === name ? [tag] : [tag, name],
    tier: 'fast',
    language: code,
    languageName: languageName(code),
    gender: 'male',
    accent: accentOf(tag),
    age: 'middle-aged',
    description: `The plain voice of eSpeak NG for ${dialectName(tag)}: the quickest there is, easily understood and plainly artificial.`,
    categories: ['IVR/Call Center', 'Conversational'],
    recipe: recipeOf(voice, {
      own,
      character: { ...PLAIN_CHARACTER, wordsPerMinute: naturalPace(own, NATURAL_PACE) },
    }),
  };
}

export function naturalPace(own: VoiceMeasures | null, factor: number): number | null {
  return own?.wordsPerMinute == null ? null : Math.round(own.wordsPerMinute * factor);
}

/** Basis of ids and short names: the engine's `en` is British English. */
export function espeakTag(name: string): string {
  return name === 'en' ? 'en-gb' : name;
}

function accentOf(tag: string): CatalogueVoice['accent'] {
  if (tag.startsWith('en-us')) return 'American';
  if (tag.startsWith('en-gb')) return 'British';
  return INDIAN.has(tag) ? 'Indian' : 'Neutral';
}

const INDIAN = new Set(['hi', 'bn', 'ta', 'te', 'mr', 'gu', 'kn', 'ml', 'pa', 'or', 'as', 'ur', 'kok', 'sd', 'bpy']);

/** Default voice without any engine, for error messages. */
export const PLAIN_ENGLISH: CatalogueVoice = plainVoice({
  engine: 'espeak-ng',
  model: 'espeak-ng',
  name: 'en-us',
  language: 'en-us',
  gender: 'male',
  clones: false,
});
