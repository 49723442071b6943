import type { CountTokens } from '../tokens.ts';
import { createPreparation } from './dictionary-words.ts';
import { CONTEXT_CHARACTERS, messagesFor } from './prompt.ts';
import { applyDictionary } from './rules/correct-by-rules.ts';
import { createDictionary } from './rules/dictionary.ts';
import { countInSlices } from './stream-by-rules.ts';
import type { CorrectionRequest } from './text-correction.ts';
import { windowsOf } from './windows.ts';

export interface TokensNeeded {
  /** Tokens read. */
  promptTokens: number;
  /** Tokens written: the likely number, and the maximum. */
  leastTokens: number;
  mostTokens: number;
}

/** "eta" alone expands to four words. */
const MOST_TOKENS_OF_ABBREVIATION = 4;

/** Estimates the tokens that a correction takes, by a model part by part, or by rules. */
export function* tokensNeeded(
  request: Pick<CorrectionRequest, 'text' | 'dictionary' | 'style' | 'appContext'>,
  { isByModel, countTokens }: { isByModel: boolean; countTokens: CountTokens },
): Generator<void, TokensNeeded> {
  const { text, dictionary, style } = request;
  const putWords = yield* createDictionary(dictionary);
  const readByRules = yield* countInSlices(text, countTokens);
  const writtenByRules = yield* countInSlices((yield* applyDictionary(text, putWords)).text, countTokens);
  const mostOfOne = style.expandAbbreviations ? MOST_TOKENS_OF_ABBREVIATION : 2;
  const byRules = {
    promptTokens: readByRules,
    leastTokens: writtenByRules,
    mostTokens: mostOfOne * writtenByRules + 64,
  };
  if (!isByModel) return byRules;
  const prepare = createPreparation(putWords);
  let promptTokens = 0;
  let mostTokens = 0;
  let before = '';
  for (const part of windowsOf(text)) {
    if (part.isVerbatim) continue;
    const prepared = yield* prepare(part.text);
    if (prepared.leftTo === 'model') {
      promptTokens += promptTokensOf(messagesFor({ ...request, ...prepared, before }), countTokens);
      mostTokens += mostAnswerTokens(countTokens(prepared.text));
      yield;
    }
    before = prepared.text.slice(-CONTEXT_CHARACTERS);
  }
  // The model may fail, and then the rules run too.
  return {
    promptTokens: promptTokens + byRules.promptTokens,
    leastTokens: byRules.leastTokens,
    mostTokens: mostTokens + byRules.mostTokens,
  };
}

/** Limit of a model's answer to a part of this length, including some reasoning. */
export function mostAnswerTokens(textTokens: number): number {
  return 2 * textTokens + 256;
}

export function promptTokensOf(messages: readonly { content: string }[], countTokens: CountTokens): number {
  return countTokens(messages.map(({ content }) => content).join('\n'));
}
