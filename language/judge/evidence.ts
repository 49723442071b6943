import { textSlices } from '../../runtime/slices.ts';
import { PlainForm, plainForm } from './plain-form.ts';

export interface QuoteFinder {
  /** The quote as the text has it; null if it does not occur. */
  find(quote: string): Promise<string | null>;
}

/** A quote with fewer letters and digits proves nothing. */
const LEAST_LETTERS = 2;

/**
 * Creates a finder. Models copy inexactly, so text and quote are normalized. A quote may span several texts and must be
 * whole words: `able to help` does not occur in `unable to help`.
 */
export async function quoteFinder(texts: readonly string[]): Promise<QuoteFinder> {
  const original = texts.join('\n');
  const form = new PlainForm();
  for await (const slice of textSlices(original)) form.append(original, slice);
  const { text: haystack, places } = form;
  return {
    async find(quote) {
      const needle = trimmed(plainForm(quote).text);
      if ((needle.match(/[\p{L}\p{N}]/gu)?.length ?? 0) < LEAST_LETTERS) return null;
      const at = await placeOf(needle, haystack);
      if (at < 0) return null;
      const last = places[at + needle.length - 1]!;
      return original.slice(places[at], last + (original.codePointAt(last)! > 0xffff ? 2 : 1));
    },
  };
}

/** Removes the model's spaces and quotation marks around a quote. */
function trimmed(text: string): string {
  return text
    .replace(/^['" ]+|['" ]+$/g, '')
    .replace(/^(\.\.\.)+|(\.\.\.)+$/g, '')
    .trim();
}

/**
 * Index of the first occurrence as whole words; -1 if none. Knuth-Morris-Pratt, because `indexOf` takes a tenth of a
 * second when text and quote repeat the same letter.
 */
async function placeOf(needle: string, haystack: string): Promise<number> {
  const borders = bordersOf(needle);
  let matched = 0;
  for await (const { from, to } of textSlices(haystack)) {
    for (let at = from; at < to; at++) {
      const unit = haystack.charCodeAt(at);
      while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = borders[matched - 1]!;
      if (needle.charCodeAt(matched) === unit) matched += 1;
      if (matched < needle.length) continue;
      const start = at + 1 - matched;
      if (isBetweenWords(haystack, start) && isBetweenWords(haystack, at + 1)) return start;
      matched = borders[matched - 1]!;
    }
  }
  return -1;
}

/** The KMP failure function: for each prefix, the length of its longest proper border. */
function bordersOf(text: string): Uint32Array {
  const borders = new Uint32Array(text.length);
  for (let at = 1, length = 0; at < text.length; at++) {
    while (length > 0 && text.charCodeAt(at) !== text.charCodeAt(length)) length = borders[length - 1]!;
    if (text.charCodeAt(at) === text.charCodeAt(length)) length += 1;
    borders[at] = length;
  }
  return borders;
}

/** Whether a word may end or begin there. */
function isBetweenWords(text: string, at: number): boolean {
  if (at === 0 || at === text.length) return true;
  const isLow = at > 1 && (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
  const before = String.fromCodePoint(text.codePointAt(isLow ? at - 2 : at - 1)!);
  const after = String.fromCodePoint(text.codePointAt(at)!);
  if (!IN_WORD.test(before) || !IN_WORD.test(after)) return true;
  return !OF_ONE_LETTER.test(after) && (UNSPACED.test(before) || UNSPACED.test(after));
}

const IN_WORD = /^[\p{L}\p{M}\p{N}]$/u;
/** Accents, vowel signs, and the parts of a Korean syllable after the first. */
const OF_ONE_LETTER = /^[\p{M}\u1160-\u11ff]$/u;
/** Scripts without spaces between words, or with attached particles. */
const UNSPACED =
  /^[\p{sc=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}\p{sc=Hangul}]$/u;
