import type { CatalogueVoice, OpenaiVoiceName } from './catalogue.ts';

/** OpenAI's voices by gender and place among ours: the order of `ESPEAK_CHARACTERS` fits their descriptions. */
const OPENAI_VOICES: Readonly<Record<OpenaiVoiceName, { gender: 'female' | 'male'; place: number }>> = {
  alloy: { gender: 'female', place: 0 },
  nova: { gender: 'female', place: 1 },
  sage: { gender: 'female', place: 2 },
  shimmer: { gender: 'female', place: 3 },
  coral: { gender: 'female', place: 4 },
  marin: { gender: 'female', place: 5 },
  echo: { gender: 'male', place: 0 },
  ash: { gender: 'male', place: 1 },
  onyx: { gender: 'male', place: 2 },
  fable: { gender: 'male', place: 3 },
  ballad: { gender: 'male', place: 4 },
  verse: { gender: 'male', place: 5 },
  cedar: { gender: 'male', place: 0 },
};

/**
 * Finds a substitute for an OpenAI voice: a voice of the same name, such as Kokoro's `af_alloy`, else one of the same
 * gender. It belongs to the preferred engine of the language.
 * @param voices quality voices, those of the preferred engine first
 * @returns null for other names
 */
export function openaiVoice(
  name: string,
  { voices, usual }: { voices: readonly CatalogueVoice[]; usual: CatalogueVoice },
): CatalogueVoice | null {
  const lower = name.toLowerCase();
  if (!Object.hasOwn(OPENAI_VOICES, lower)) return null;
  const { gender, place } = OPENAI_VOICES[lower as OpenaiVoiceName];
  const ofLanguage = voices.filter(({ language }) => language === usual.language);
  const namesake = ofLanguage.find(({ shortNames }) =>
    shortNames.some((own) => own.toLowerCase().endsWith(`_${lower}`)),
  );
  if (namesake !== undefined) return namesake;
  const ofEngine = ofLanguage.filter(({ recipe }) => recipe.engine === ofLanguage[0]!.recipe.engine);
  const ofGender = ofEngine.filter((voice) => voice.gender === gender);
  const fitting = ofGender.length > 0 ? ofGender : ofEngine;
  return fitting[place % fitting.length] ?? usual;
}
