import type { CatalogueVoice, VoiceLikeness } from './catalogue.ts';
import { languageCode } from './language-names.ts';

/**
 * Implements `VoiceCatalogue.like`.
 * @param catalogue the voices of each tier, in the order of preference
 */
export function voiceLike(
  { language: wanted, gender, around }: VoiceLikeness,
  { fast, quality }: { fast: readonly CatalogueVoice[]; quality: readonly CatalogueVoice[] },
): Pick<CatalogueVoice, 'id' | 'recipe'> | null {
  const outer = [...fast, ...quality].find(({ id }) => id === around.id);
  const own = around.recipe.language;
  const language = wanted ?? own;
  const voices = outer?.tier === 'quality' ? [...quality, ...fast] : [...fast, ...quality];
  const speaking = speakersOf(language, voices);
  const fitsLanguage = tagsOf(own).includes(language) || speaking.some(({ recipe }) => recipe.language === own);
  if (fitsLanguage && (gender === null || outer?.gender === gender)) return around;
  const preferred = gender ?? outer?.gender;
  const fitting = speaking.find((voice) => voice.gender === preferred);
  // A custom voice of the language is nearer than a catalogue voice without the requested gender.
  return fitting ?? (fitsLanguage ? around : (speaking[0] ?? null));
}

/** Voices of the exact language or dialect, else of its base language. */
function speakersOf(language: string, voices: readonly CatalogueVoice[]): readonly CatalogueVoice[] {
  for (const tag of tagsOf(language)) {
    const speaking = voices.filter(({ recipe }) => recipe.language === tag);
    if (speaking.length > 0) return speaking;
  }
  const code = languageCode(language);
  return voices.filter((voice) => voice.language === code);
}

/** `en-gb-scotland`, `en-gb`, `en`. */
function tagsOf(language: string): string[] {
  const parts = language.split('-');
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('-'));
}
