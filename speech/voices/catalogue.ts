import type { VoiceRecipe } from './voice-recipe.ts';

/** The built-in voices of the installed engines. */
export interface VoiceCatalogue {
  /** `quality` (`svc Quality`) or `fast` (`svc Fast`); the default voice of a language comes first. */
  list(tier: VoiceTier): readonly CatalogueVoice[];
  /**
   * Finds a voice by id, short name such as `en-us` or `hi`, or OpenAI name such as `alloy`, in any case. An OpenAI
   * name finds a voice that reads the script of the text. Null for unknown names.
   */
  find(idOrName: string, text?: string): CatalogueVoice | null;
  /** Default voice, in English. */
  readonly usual: CatalogueVoice;
  /** Default voice for a text: one that reads its script, such as Telugu, else the default. */
  usualFor(text: string): CatalogueVoice;
  /**
   * Finds a voice by language and gender for a part of a text. Keeps the surrounding voice if that fits; otherwise
   * prefers its tier and gender. The language counts more than the gender. Null if no voice speaks the language.
   */
  like(likeness: VoiceLikeness): Pick<CatalogueVoice, 'id' | 'recipe'> | null;
  /** Languages with tuned voices; ISO 639. */
  languages(): readonly { language: string; name: string }[];
}

export interface VoiceLikeness {
  /** BCP 47 in lower case; null: that of the surrounding voice. */
  language: string | null;
  gender: 'female' | 'male' | null;
  /** A voice of the catalogue or a custom one. */
  around: Pick<CatalogueVoice, 'id' | 'recipe'>;
}

export type VoiceTier = 'quality' | 'fast';

export interface CatalogueVoice {
  /** A UUID, the same on every installation. */
  id: string;
  /** Shown to people. */
  name: string;
  /** Names that `find` accepts. */
  shortNames: readonly string[];
  tier: VoiceTier;
  /** ISO 639. */
  language: string;
  languageName: string;
  /** Null, like the age, if the engine does not say. */
  gender: 'female' | 'male' | null;
  accent: VoiceAccent;
  age: 'young' | 'middle-aged' | 'old' | null;
  description: string;
  categories: readonly VoiceCategory[];
  recipe: VoiceRecipe;
}

/** Names of OpenAI's voices, which clients of its API send. */
export const OPENAI_VOICE_NAMES = [
  ...(['alloy', 'ash', 'ballad', 'cedar', 'coral', 'echo', 'fable'] as const),
  ...(['marin', 'nova', 'onyx', 'sage', 'shimmer', 'verse'] as const),
];
export type OpenaiVoiceName = (typeof OPENAI_VOICE_NAMES)[number];

export const VOICE_ACCENTS = ['American', 'British', 'Indian', 'Neutral'] as const;
export type VoiceAccent = (typeof VOICE_ACCENTS)[number];

/** Platform specification, Voice (list form). */
export const VOICE_CATEGORIES = [
  'Entertainment/TV',
  'IVR/Call Center',
  'Finance/Banking',
  'Conversational',
  'Medical/Healthcare',
  'Religious/Spiritual',
  'Corporate/Business',
  'Government/Public Sector',
  'Social Media',
  'Documentary',
  'Travel/Tourism',
  'Kids/Children',
  'Legal',
  'Audiobook',
  'Gaming',
  'Podcast',
  'Advertisement',
  'E-Learning',
  'News/Journalism',
  'Sports',
  'Animation',
  'Professional Cloning',
] as const;
export type VoiceCategory = (typeof VOICE_CATEGORIES)[number];
