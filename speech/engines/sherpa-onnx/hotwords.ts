import type { Keyword } from '../../recognizer.ts';

/** Letter case of a model's tokens, in which keywords must be written. */
export type LetterCase = 'upper' | 'lower' | 'mixed';

/**
 * Formats keywords as sherpa-onnx hotwords: terms separated by `/`, each with a boost per token; '' for none. Removes
 * characters with special meaning in the format or a vocabulary.
 */
export function hotwordsOf(keywords: readonly Keyword[], letterCase: LetterCase): string {
  const terms = keywords.flatMap(({ term, weight }) => {
    const written = inCase(term.normalize('NFC').replace(NOT_A_WORD, ' ').replace(/\s+/g, ' ').trim(), letterCase);
    const score = Math.min(HIGHEST_SCORE, weight * USUAL_SCORE);
    return written === '' || score <= 0 ? [] : [`${written} :${score.toFixed(2)}`];
  });
  return [...new Set(terms)].join('/');
}

/** From the letters in a `tokens.txt`. */
export function letterCaseOf(tokens: string): LetterCase {
  const hasUpper = /\p{Lu}/u.test(withoutSymbols(tokens));
  const hasLower = /\p{Ll}/u.test(withoutSymbols(tokens));
  if (hasUpper && !hasLower) return 'upper';
  return hasLower && !hasUpper ? 'lower' : 'mixed';
}

/** sherpa-onnx's default, for a keyword of weight 1. Beyond the highest score it recognises nothing else. */
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
