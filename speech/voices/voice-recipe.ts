import type { EngineVoice, SynthesisEngineName, VoiceReference } from '../synthesizer.ts';
import type { VoiceMeasures } from './voice-measures.ts';

/** How to produce a voice from an engine's voice. Plain data, which is stored with custom voices. */
export interface VoiceRecipe {
  engine: SynthesisEngineName;
  /** `EngineVoice.model` and `.name`. */
  model: string;
  engineVoice: string;
  /** BCP 47 in lower case, such as `en-us`: how its texts are read. */
  language: string;
  /** Measures of the unchanged engine voice; null if unknown. */
  own: VoiceMeasures | null;
  character: VoiceCharacter;
  /** For an engine voice that clones. */
  reference: VoiceReference | null;
}

export interface VoiceCharacter {
  /** Natural pace; null: the system's default. */
  wordsPerMinute: number | null;
  pitchSemitones: number;
  pitchRange: number;
  /** Relative to the common level of all voices. */
  levelDb: number;
  /**
   * Target long-term spectrum, dB in each of `BAND_CENTRES_HZ`; `similarity` says how far to approach it. Null: the
   * engine's own.
   */
  spectrumDb: readonly number[] | null;
}

export const PLAIN_CHARACTER: VoiceCharacter = {
  wordsPerMinute: null,
  pitchSemitones: 0,
  pitchRange: 1,
  levelDb: 0,
  spectrumDb: null,
};

/** Recipe of an engine's voice. By default it is unchanged, and its measures are unknown. */
export function recipeOf(
  { engine, model, name, language }: EngineVoice & { engine: SynthesisEngineName },
  changes: Partial<VoiceRecipe> = {},
): VoiceRecipe {
  return {
    ...{ engine, model, engineVoice: name, language, own: null, character: PLAIN_CHARACTER, reference: null },
    ...changes,
  };
}

/** Speaking style of a request; ranges and defaults of the API. */
export interface SpeakingStyle {
  /** Null: the voice's own pace, else 137. */
  wordsPerMinute: number | null;
  /** 0.25 to 4: factor on the pace. */
  speed: number;
  /** 0 to 100: 0 moves the pitch as much as possible, 50 as the voice does, 100 hardly. */
  stability: number;
  /** 0 to 100: how closely to match the voice's own timbre. */
  similarity: number;
  /** Whether to normalise the level and improve clarity. */
  enhance: boolean;
}

export const USUAL_STYLE: SpeakingStyle = {
  wordsPerMinute: null,
  speed: 1,
  stability: 50,
  similarity: 75,
  enhance: true,
};

/** Platform specification, Voice. */
export const DEFAULT_WORDS_PER_MINUTE = 137;
