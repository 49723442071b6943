import type { AvailableVoice } from '../speech-synthesis.ts';
import type { CatalogueVoice } from './catalogue.ts';
import { ESPEAK_CHARACTERS, type EspeakCharacter } from './espeak-characters.ts';
import { espeakMeasures } from './espeak-measures.ts';
import { espeakTag, naturalPace } from './espeak-plain-voices.ts';
import { dialectName, languageCode, languageName } from './language-names.ts';
import { FEMALE_SPEECH_SPECTRUM_DB, MALE_SPEECH_SPECTRUM_DB } from './speech-spectra.ts';
import { voiceId } from './voice-id.ts';
import { recipeOf } from './voice-recipe.ts';

/** Characters whose language the engine has. Variants need not be listed: eSpeak NG combines each with every voice. */
export function characterVoices(espeak: readonly AvailableVoice[]): readonly CatalogueVoice[] {
  const installed = new Map(espeak.map((voice) => [voice.name, voice]));
  return ESPEAK_CHARACTERS.flatMap((character) => {
    const base = installed.get(character.base);
    return base === undefined ? [] : [characterVoice(character, base)];
  });
}

function characterVoice(character: EspeakCharacter, base: AvailableVoice): CatalogueVoice {
  const { name, timbre, accent, categories } = character;
  const tag = espeakTag(character.base);
  const key = `${tag}-${plainLetters(name)}`;
  const engineVoice = `${base.name}+${timbre.variant}`;
  const own = espeakMeasures(engineVoice);
  const code = languageCode(tag);
  return {
    id: voiceId(`espeak-ng:quality:${key}`),
    name,
    shortNames: [key],
    tier: 'quality',
    language: code,
    languageName: languageName(code),
    gender: timbre.gender,
    accent,
    age: timbre.age,
    description: `${timbre.sound} in ${dialectName(tag)}. Made of eSpeak NG, which shapes sounds by rule: easily understood, also on the telephone, and plainly artificial.`,
    categories,
    recipe: recipeOf(base, {
      engineVoice,
      own,
      character: {
        wordsPerMinute: naturalPace(own, timbre.pace),
        pitchSemitones: timbre.pitchSemitones,
        pitchRange: timbre.pitchRange,
        levelDb: 0,
        spectrumDb: timbre.gender === 'female' ? FEMALE_SPEECH_SPECTRUM_DB : MALE_SPEECH_SPECTRUM_DB,
      },
    }),
  };
}

/** Without accents, for typing. */
function plainLetters(name: string): string {
  return name.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
