import type { AppContext, CorrectionStyle, DictionaryEntry } from '../text-correction.ts';
import { createDictionary } from './dictionary.ts';
import { languageOf } from './language-of.ts';
import { rulesFor } from './rules-for.ts';
import { type Token, textOf } from './token.ts';
import { type Spans, tokenize } from './tokenize.ts';

/** What corrected a text where it was these rules. Another number when they answer otherwise. */
export const RULES_MODEL = 'tandem-rules-1';

export interface RulesRequest {
  text: string;
  dictionary: readonly DictionaryEntry[];
  style: CorrectionStyle;
  appContext: AppContext | null;
}

/**
 * Corrects a text by rules: the same text the same way each time, any text without failing. What is corrected already
 * stays as it is: rules are applied until nothing changes. It works in slices of well below a millisecond, between
 * which it yields; `runInSlices` lets others run meanwhile.
 */
export function* correctByRules({ text, dictionary, style, appContext }: RulesRequest): Generator<void, string> {
  const applyDictionary = createDictionary(dictionary);
  let corrected = text;
  let fixed: Spans = [];
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const before = corrected;
    let tokens = yield* applyDictionary(yield* tokenize(before, fixed));
    const rules = rulesFor({ style, appContext, ...(yield* languageOf(tokens)) });
    for (const rule of rules) tokens = yield* rule(tokens);
    corrected = textOf(tokens);
    if (corrected === before) break;
    fixed = fixedOf(tokens);
  }
  return corrected;
}

/** The dictionary alone. */
export function* applyDictionary(text: string, dictionary: readonly DictionaryEntry[]): Generator<void, string> {
  return textOf(yield* createDictionary(dictionary)(yield* tokenize(text)));
}

/** Nearly always the second finds nothing more to do; a rule whose result calls for another may take one more. */
const MOST_PASSES = 6;

function fixedOf(tokens: readonly Token[]): Spans {
  const spans: [number, number][] = [];
  let at = 0;
  for (const { text, isFixed } of tokens) {
    if (isFixed) spans.push([at, at + text.length]);
    at += text.length;
  }
  return spans;
}
