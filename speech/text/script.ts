/**
 * A text prepared for synthesis: clauses with the spoken form of each written word. Created from plain text or SSML by
 * `read-script.ts`; synthesis knows nothing of markup, numbers or abbreviations.
 */
export interface Script {
  /** In order. Empty if nothing in the text can be spoken. */
  clauses: ScriptClause[];
  /** Billed length: code points of the text without markup. */
  characters: number;
}

/** A unit of synthesis. A change of prosody, a break and the end of a sentence end it. */
export interface ScriptClause {
  /** In order. Empty for a mere pause. */
  words: ScriptWord[];
  prosody: Prosody;
  /** Silence after the clause, added to the engine's own pause. 0 to 10 000. */
  pauseAfterMs: number;
  /** Index of the `VoiceWish` for this clause; null: the voice of the request. */
  voice: number | null;
  /** In order. */
  marks: ScriptMark[];
}

/** A place in the text whose time is reported. */
export interface ScriptMark {
  name: string;
  /** Index of the following word in the clause; the number of words for the end. */
  word: number;
}

/** A voice requested by SSML. At least one of name, language and gender is set. */
export interface VoiceWish {
  /** An id or a short name of the catalogue. */
  name: string | null;
  /** BCP 47 in lower case; the text is read in it. */
  language: string | null;
  gender: 'female' | 'male' | null;
  /** Index of the enclosing wish; null: the voice of the request. */
  outer: number | null;
  position: string;
}

/** One word, without the white space around it. */
export interface ScriptWord {
  /** Original text with punctuation, which word times refer to. Joined with spaces they are the text. */
  written: string;
  /**
   * Text for the engine: one or several words with relevant punctuation, never markup or control characters. '' if
   * silent.
   */
  spoken: string;
  /** Pronunciation in IPA, from SSML; null: the engine decides. */
  phonemes: string | null;
}

/** SSML `prosody`; neutral is 1, 0, 0. */
export interface Prosody {
  /** Factor on the pace, 0.25 to 4. */
  rate: number;
  /** -24 to 24. */
  pitchSemitones: number;
  /** -60 to 12; -Infinity is silent. */
  volumeDb: number;
}

export const NEUTRAL_PROSODY: Prosody = { rate: 1, pitchSemitones: 0, volumeDb: 0 };

/** Invalid SSML. The message says what and where. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}
