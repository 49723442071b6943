import type { TokenUsage } from '../llm.ts';

/**
 * Text correction by a language model, or by rules if none is configured. Each part of a model's answer is checked
 * before it is streamed, so streamed text is final. Rules correct a part whose answer is rejected.
 */
export interface TextCorrection {
  /**
   * Streams a correction; the last part is `finished`. Without a model name, rules take over if no model is configured
   * or from the point where the model fails. With a name, a failure is an error.
   * @throws TandemError as `LanguageModels.stream`, if a model was named; the signal's reason
   */
  stream(request: CorrectionRequest): AsyncGenerator<CorrectionPart, void>;
}

export interface CorrectionRequest {
  text: string;
  /** At most 100. */
  dictionary: readonly DictionaryEntry[];
  style: CorrectionStyle;
  appContext: AppContext | null;
  /** Id or alias of a model, or that of the rules; null: the default model, else the rules. */
  model: string | null;
  /** As in `LanguageModels`. */
  onBehalfOf?: string;
  signal: AbortSignal;
}

/** `term` may be one or several words. */
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
   * True contracts ("do not" to "don't"), false expands, null changes neither, except that a professional tone and a
   * document expand.
   */
  useContractions: boolean | null;
  expandAbbreviations: boolean;
}

export type AppContext = 'email' | 'chat' | 'document' | 'message' | 'social';

export type CorrectionPart =
  | { type: 'text'; text: string }
  /** The model's prompt and answer tokens so far; repeated for each part of the text. */
  | { type: 'used'; usage: TokenUsage }
  /**
   * Total usage; a rejected answer counts as the rules' correction in its place. `model` is the rules' id if they
   * corrected everything; `byRules` is how much they did.
   */
  | { type: 'finished'; usage: TokenUsage; model: string; byRules: 'nothing' | 'parts' | 'all' };
