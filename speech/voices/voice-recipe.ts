import type { SynthesisEngineName, VoiceReference } from '../synthesizer.ts';
import type { VoiceMeasures } from './voice-measures.ts';

/** How a voice of ours is made of one that an engine has. Plain data: it is stored with custom voices. */
export interface VoiceRecipe {
  engine: SynthesisEngineName;
  /** `EngineVoice.model` and `.name`. */
  model: string;
  engineVoice: string;
  /** BCP 47 in lower case, such as `en-us`: how its texts are read. */
  language: string;
  /** Of the engine's voice as it is; null when nobody has measured it. */
  own: VoiceMeasures | null;
  character: VoiceCharacter;
  /** For an engine's voice that clones. */
  reference: VoiceReference | null;
}

/** What is changed of the engine's voice. */
export interface VoiceCharacter {
  /** Natural pace; null: the system's default. */
  wordsPerMinute: number | null;
  pitchSemitones: number;
  /** Factor on the range of the pitch. */
  pitchRange: number;
  /** On the level at which all voices speak. */
  levelDb: number;
  /**
   * The long-term spectrum it is to have, dB in each of `BAND_CENTRES_HZ`; `similarity` says how much of the way to go.
   * Null: the engine's own.
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

/** How somebody wants a text spoken; the ranges and defaults of the API. */
export interface SpeakingStyle {
  /** Null: the voice's own pace, else 137. */
  wordsPerMinute: number | null;
  /** 0.25 to 4: factor on the pace. */
  speed: number;
  /** 0 to 100: 0 moves the pitch as much as can be, 50 as the voice does, 100 hardly. */
  stability: number;
  /** 0 to 100: how much of its own sound the voice is given. */
  similarity: number;
  /** Whether speech is brought to one level and made clearer. */
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
