import type { TokenUsage } from '../llm.ts';

/**
 * Text correction: by a language model where one is configured, else by rules. Every part of what a model answers is
 * checked before it is passed on: what was streamed stands, and where an answer is no correction the rules do that part.
 */
export interface TextCorrection {
  /**
   * The last part is `finished`. Who names no model gets a corrected text: by rules where no model is configured, and from
   * the place on where the model fails. Who names one gets that one or an error.
   * @throws TandemError as `LanguageModels.stream`, when a model was named; the signal's reason
   */
  stream(request: CorrectionRequest): AsyncGenerator<CorrectionPart, void>;
}

export interface CorrectionRequest {
  text: string;
  /** At most 100. */
  dictionary: readonly DictionaryEntry[];
  style: CorrectionStyle;
  appContext: AppContext | null;
  /** Id or alias of a model, or that of the rules; null: the usual model, or the rules where there is none. */
  model: string | null;
  /** As `LanguageModels` has it. */
  onBehalfOf?: string;
  signal: AbortSignal;
}

/** `term` as it may stand in the text, one word or several, and what belongs there instead. */
export interface DictionaryEntry {
  term: string;
  replacement: string;
}

export interface CorrectionStyle {
  /** Such as professional, casual or friendly. */
  tone: string | null;
  autoCapitalize: boolean;
  autoPunctuate: boolean;
  /**
   * True contracts ("do not" to "don't"), false expands, null leaves both as they are; but a professional tone and a
   * document expand.
   */
  useContractions: boolean | null;
  expandAbbreviations: boolean;
}

export type AppContext = 'email' | 'chat' | 'document' | 'message' | 'social';

export type CorrectionPart =
  | { type: 'text'; text: string }
  /** So far, of a model: what it is asked and what it has produced; more than once with each part of the text. */
  | { type: 'used'; usage: TokenUsage }
  /**
   * What was used, answers included that were no corrections. `model` is that of the rules where they did all of it;
   * `byRules` says how much they did.
   */
  | { type: 'finished'; usage: TokenUsage; model: string; byRules: 'nothing' | 'parts' | 'all' };
