/**
 * A text as it is to be spoken: cut into clauses, with what each written word sounds like. Made from plain text or SSML
 * by `read-script.ts`; whoever speaks it knows nothing of markup, numbers or abbreviations.
 */
export interface Script {
  /** In order. Empty when nothing of the text can be said. */
  clauses: ScriptClause[];
  /** Code points of the text without its markup: what is billed. */
  characters: number;
}

/** What is spoken in one go. A change of prosody, a break and the end of a sentence end it. */
export interface ScriptClause {
  /** In order. Empty where there is only a pause. */
  words: ScriptWord[];
  prosody: Prosody;
  /** Silence after it, beyond what the engine makes of its punctuation. 0 to 10 000. */
  pauseAfterMs: number;
  /** Index of the `VoiceWish` whose voice speaks it; null: the voice of the request. */
  voice: number | null;
  /** In order. */
  marks: ScriptMark[];
}

/** A place in the text whose time is reported. */
export interface ScriptMark {
  name: string;
  /** Index of the word of the clause that follows; the number of its words: after the last one. */
  word: number;
}

/** The voice that SSML asks for in a stretch of text. At least one of name, language and gender is given. */
export interface VoiceWish {
  /** An id, or a short name of the catalogue. */
  name: string | null;
  /** BCP 47 in lower case; the text is read in it. */
  language: string | null;
  gender: 'female' | 'male' | null;
  /** Index of the wish around it; null: the voice of the request. */
  outer: number | null;
  /** Where it is in the text, for error messages. */
  position: string;
}

/** One word as it is written, white space around it left out. */
export interface ScriptWord {
  /** Of the text, punctuation included; word times are reported under it. Joined with spaces they are the text. */
  written: string;
  /**
   * What the engine is given: one or several words with the punctuation that matters to how they are said, and never
   * markup or a control character. '' for what is not said.
   */
  spoken: string;
  /** How it sounds, in IPA, from SSML; null where the engine knows. */
  phonemes: string | null;
}

/** Of SSML `prosody`; neutral is 1, 0, 0. */
export interface Prosody {
  /** Factor on the pace, 0.25 to 4. */
  rate: number;
  /** -24 to 24. */
  pitchSemitones: number;
  /** -60 to 12; -Infinity is silent. */
  volumeDb: number;
}

export const NEUTRAL_PROSODY: Prosody = { rate: 1, pitchSemitones: 0, volumeDb: 0 };

/** Text that begins as SSML does and is none that can be spoken. The message says what and where. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}
