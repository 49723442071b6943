import type { VoiceRecipe } from './voice-recipe.ts';

/** The voices that come with what is installed. */
export interface VoiceCatalogue {
  /** `quality` (`svc Quality`) or `fast` (`svc Fast`), the usual voice of a language before its others. */
  list(tier: VoiceTier): readonly CatalogueVoice[];
  /**
   * By its id, by a short name such as `en-us` or `hi`, or by one of OpenAI's names such as `alloy`, in any case. A name
   * of OpenAI's finds a voice that reads the script of the text. Null for unknown names.
   */
  find(idOrName: string, text?: string): CatalogueVoice | null;
  /** For requests that name none, in English. */
  readonly usual: CatalogueVoice;
  /** For a text without a voice: one that reads its script, such as Telugu, otherwise the usual one. */
  usualFor(text: string): CatalogueVoice;
  /**
   * For a stretch of a text: a voice of the language and gender. Keeps the voice around it if that fits; otherwise
   * prefers its tier and gender. The language counts more than the gender. Null if no voice speaks the language.
   */
  like(likeness: VoiceLikeness): Pick<CatalogueVoice, 'id' | 'recipe'> | null;
  /** In which somebody took care of the voices; ISO 639. */
  languages(): readonly { language: string; name: string }[];
}

export interface VoiceLikeness {
  /** BCP 47 in lower case; null: that of the voice around it. */
  language: string | null;
  gender: 'female' | 'male' | null;
  /** A voice of the catalogue or a custom one. */
  around: Pick<CatalogueVoice, 'id' | 'recipe'>;
}

export type VoiceTier = 'quality' | 'fast';

export interface CatalogueVoice {
  /** A UUID, the same on every installation. */
  id: string;
  /** As people are shown it. */
  name: string;
  /** The names `find` knows it by. */
  shortNames: readonly string[];
  tier: VoiceTier;
  /** ISO 639. */
  language: string;
  languageName: string;
  /** Null, like the age, where its engine does not say. */
  gender: 'female' | 'male' | null;
  accent: VoiceAccent;
  age: 'young' | 'middle-aged' | 'old' | null;
  description: string;
  categories: readonly VoiceCategory[];
  recipe: VoiceRecipe;
}

/** Names of OpenAI's voices, which clients written for its API send. */
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
