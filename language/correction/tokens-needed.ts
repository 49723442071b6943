import type { CountTokens } from '../tokens.ts';
import { createPreparation } from './dictionary-words.ts';
import { CONTEXT_CHARACTERS, messagesFor } from './prompt.ts';
import { applyDictionary } from './rules/correct-by-rules.ts';
import { createDictionary } from './rules/dictionary.ts';
import { countInSlices } from './stream-by-rules.ts';
import type { CorrectionRequest } from './text-correction.ts';
import { windowsOf } from './windows.ts';

export interface TokensNeeded {
  /** Of what is read. */
  promptTokens: number;
  /** Of what is written: most probably, and at the most. */
  leastTokens: number;
  mostTokens: number;
}

/** "eta" alone has four words behind it. */
const MOST_TOKENS_OF_ABBREVIATION = 4;

/** What correcting a text may take, by a model part for part as it will be asked; or by rules. */
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
  // It may fail after all, and rules do it.
  return {
    promptTokens: promptTokens + byRules.promptTokens,
    leastTokens: byRules.leastTokens,
    mostTokens: mostTokens + byRules.mostTokens,
  };
}

/** What a model is allowed to produce about a part of so many tokens, some thinking included. */
export function mostAnswerTokens(textTokens: number): number {
  return 2 * textTokens + 256;
}

export function promptTokensOf(messages: readonly { content: string }[], countTokens: CountTokens): number {
  return countTokens(messages.map(({ content }) => content).join('\n'));
}
