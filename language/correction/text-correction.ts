import type { TokenUsage } from '../llm.ts';

/** Text correction: by a language model where one is configured, else by rules. */
export interface TextCorrection {
  /** Throws as `LanguageModels.stream` does. The last part is `finished`. */
  stream(request: CorrectionRequest): AsyncGenerator<CorrectionPart, void>;
}

export interface CorrectionRequest {
  text: string;
  /** At most 100. */
  dictionary: readonly DictionaryEntry[];
  style: CorrectionStyle;
  appContext: AppContext | null;
  /** Id or alias of a model; null: the usual one, or the rules where there is none. */
  model: string | null;
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
  /** True contracts ("do not" to "don't"), false expands, null leaves both as they are. */
  useContractions: boolean | null;
  expandAbbreviations: boolean;
}

export type AppContext = 'email' | 'chat' | 'document' | 'message' | 'social';

export type CorrectionPart =
  | { type: 'text'; text: string }
  /** `model` is that of the rules where they did it. */
  | { type: 'finished'; usage: TokenUsage; model: string };
