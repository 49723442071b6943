import type { Keyword } from '../../recognizer.ts';

/** What the tokens of a model are written in; keywords are looked up in it as they are written. */
export type LetterCase = 'upper' | 'lower' | 'mixed';

/**
 * The hotwords of a stream of sherpa-onnx: terms with `/` between them, each with how much each of its tokens is
 * helped; '' for none. Everything that its format or a vocabulary has another meaning for is left out of the terms.
 */
export function hotwordsOf(keywords: readonly Keyword[], letterCase: LetterCase): string {
  const terms = keywords.flatMap(({ term, weight }) => {
    const written = inCase(term.normalize('NFC').replace(NOT_A_WORD, ' ').replace(/\s+/g, ' ').trim(), letterCase);
    const score = Math.min(HIGHEST_SCORE, weight * USUAL_SCORE);
    return written === '' || score <= 0 ? [] : [`${written} :${score.toFixed(2)}`];
  });
  return [...new Set(terms)].join('/');
}

/** By the tokens of letters of a `tokens.txt`. */
export function letterCaseOf(tokens: string): LetterCase {
  const hasUpper = /\p{Lu}/u.test(withoutSymbols(tokens));
  const hasLower = /\p{Ll}/u.test(withoutSymbols(tokens));
  if (hasUpper && !hasLower) return 'upper';
  return hasLower && !hasUpper ? 'lower' : 'mixed';
}

/** sherpa-onnx's own default, for a keyword of weight 1. Beyond the highest it hears nothing else. */
const USUAL_SCORE = 1.5;
const HIGHEST_SCORE = 6;
const NOT_A_WORD = /[^\p{L}\p{M}\p{N}' -]/gu;

/** Without `<blk>`, `<sos/eos>` and the like. */
function withoutSymbols(tokens: string): string {
  return tokens.replace(/<[^>\s]*>/g, '').replace(/^#\d+/gm, '');
}

function inCase(text: string, letterCase: LetterCase): string {
  if (letterCase === 'mixed') return text;
  return letterCase === 'upper' ? text.toUpperCase() : text.toLowerCase();
}
