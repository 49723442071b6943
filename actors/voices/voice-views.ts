import {
  type CatalogueVoice,
  VOICE_ACCENTS,
  VOICE_CATEGORIES,
  type VoiceCategory,
} from '../../speech/voices/catalogue.ts';
import type { VoiceRecipe } from '../../speech/voices/voice-recipe.ts';
import type { VoiceRow } from '../../storage/queries/voices.ts';
import type { VoiceLabels, VoiceView } from './voice-desk.ts';

/** Creation date of all catalogue voices. */
const CATALOGUE_SINCE = new Date('2026-01-01T00:00:00.000Z');

export function viewOfCatalogue(voice: CatalogueVoice): VoiceView {
  const { id, name, tier, language, languageName, gender, accent, age, description, categories, recipe } = voice;
  return {
    id,
    name,
    tier,
    status: 'ready',
    error: null,
    isCustom: false,
    approximate: null,
    language,
    languageName,
    gender: gender ?? genderOf(recipe),
    accent,
    age,
    wordsPerMinute: paceOf(recipe),
    description,
    categories: [...categories],
    createdAt: CATALOGUE_SINCE,
    updatedAt: CATALOGUE_SINCE,
  };
}

export function viewOfRow(row: VoiceRow, languageName: string): VoiceView {
  const { id, name, tier, status, error, approximate, language, description, createdAt, updatedAt } = row;
  const { gender, accent, age, more } = labelsOf(row.labels);
  return {
    id,
    name,
    tier,
    status,
    error,
    isCustom: true,
    approximate,
    language,
    languageName,
    gender: gender ?? genderOf(row.recipe as VoiceRecipe | null),
    accent: accent ?? 'Neutral',
    age,
    wordsPerMinute: row.recipe === null ? null : paceOf(row.recipe as VoiceRecipe),
    description,
    categories: categoriesOf(more, tier),
    createdAt,
    updatedAt,
  };
}

/** Between the median pitch of men (about 120 Hz) and of women (about 210 Hz). */
const FEMALE_FROM_HZ = 165;

/** Gender of a voice without that label, by median pitch; `female` if unmeasured. */
function genderOf(recipe: VoiceRecipe | null): 'female' | 'male' {
  const pitchHz = recipe?.own?.pitchHz ?? null;
  if (recipe === null || pitchHz === null) return 'female';
  return pitchHz * 2 ** (recipe.character.pitchSemitones / 12) >= FEMALE_FROM_HZ ? 'female' : 'male';
}

export function storedLabels({ gender, accent, age, more }: VoiceLabels): Record<string, string> {
  return {
    ...more,
    ...(gender !== null && { gender }),
    ...(accent !== null && { accent }),
    ...(age !== null && { age }),
  };
}

function labelsOf({ gender, accent, age, ...more }: Record<string, string>): VoiceLabels {
  return {
    gender: gender === 'female' || gender === 'male' ? gender : null,
    accent: VOICE_ACCENTS.find((known) => known === accent) ?? null,
    age: age ?? null,
    more,
  };
}

/** Categories from the comma-separated label `use_case` and from how the voice was created. */
function categoriesOf(
  { use_case: text = '' }: Readonly<Record<string, string>>,
  tier: VoiceRow['tier'],
): VoiceCategory[] {
  const named = text.split(',').map((item) => item.trim().toLowerCase());
  if (tier === 'quality') named.push('professional cloning');
  return VOICE_CATEGORIES.filter((category) => named.includes(category.toLowerCase()));
}

function paceOf({ character }: VoiceRecipe): number | null {
  return character.wordsPerMinute;
}
