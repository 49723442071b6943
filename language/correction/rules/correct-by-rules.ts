import type { AppContext, CorrectionStyle, DictionaryEntry } from '../text-correction.ts';
import { type ApplyDictionary, createDictionary } from './dictionary.ts';
import { languageOf } from './language-of.ts';
import { rulesFor } from './rules-for.ts';
import { TOKENS_PER_SLICE, type Token } from './token.ts';
import { type Spans, tokenize } from './tokenize.ts';

/** Version of these rules, reported as the model. Increase it whenever their output changes. */
export const RULES_MODEL = 'tandem-rules-1';

export interface RulesRequest {
  text: string;
  dictionary: readonly DictionaryEntry[];
  style: CorrectionStyle;
  appContext: AppContext | null;
}

/**
 * Corrects a text by rules. Deterministic, and never fails. Idempotent: rules are applied until nothing changes. Yields
 * after slices well below a millisecond; `runInSlices` lets other work run between them.
 */
export function* correctByRules(
  { text, dictionary, style, appContext }: RulesRequest,
  prepared: ApplyDictionary | null = null,
): Generator<void, string> {
  const putWords = prepared ?? (yield* createDictionary(dictionary));
  let corrected = text;
  let fixed: Spans = [];
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const before = corrected;
    let tokens = yield* putWords(yield* tokenize(before, fixed));
    const rules = rulesFor({ style, appContext, ...(yield* languageOf(tokens)) });
    for (const rule of rules) tokens = yield* rule(tokens);
    const { text: after, fixed: spans } = yield* rendered(tokens);
    corrected = after;
    fixed = spans;
    if (after === before) break;
  }
  return corrected;
}

/** Applies only the dictionary. Also returns the words that it inserted or found in place. */
export function* applyDictionary(
  text: string,
  putWords: ApplyDictionary,
): Generator<void, { text: string; words: string[] }> {
  const { text: put, fixed } = yield* rendered(yield* putWords(yield* tokenize(text)));
  return { text: put, words: fixed.map(([start, end]) => put.slice(start, end)) };
}

/** The second pass nearly always changes nothing; a rule that triggers another may take one more. */
const MOST_PASSES = 6;

/** Joins the text and locates the dictionary's words in it. In slices, because there may be 100,000 tokens. */
function* rendered(tokens: readonly Token[]): Generator<void, { text: string; fixed: Spans }> {
  const pieces: string[] = [];
  const fixed: [number, number][] = [];
  let length = 0;
  for (let at = 0; at < tokens.length; at += TOKENS_PER_SLICE) {
    yield;
    let piece = '';
    for (const { text, isFixed } of tokens.slice(at, at + TOKENS_PER_SLICE)) {
      if (isFixed) fixed.push([length + piece.length, length + piece.length + text.length]);
      piece += text;
    }
    pieces.push(piece);
    length += piece.length;
  }
  return { text: pieces.join(''), fixed };
}
