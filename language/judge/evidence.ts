import { textSlices } from '../../runtime/slices.ts';
import { PlainForm, plainForm } from './plain-form.ts';

/** Looks quotes up in what was judged. */
export interface QuoteFinder {
  /** The quote as it stands there; null where it does not. */
  find(quote: string): Promise<string | null>;
}

/** A quote of fewer letters and digits shows nothing. */
const LEAST_LETTERS = 2;

/**
 * A model copies with small liberties, so both sides are brought to one form. A quote may reach over several texts, and
 * is of whole words: `able to help` does not stand in `unable to help`.
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

/** Spaces and quotation marks around a quote are the model's. */
function trimmed(text: string): string {
  return text
    .replace(/^['" ]+|['" ]+$/g, '')
    .replace(/^(\.\.\.)+|(\.\.\.)+$/g, '')
    .trim();
}

/**
 * Of its first occurrence as whole words; -1 without one. By Knuth, Morris and Pratt: `indexOf` takes a tenth of a second
 * where text and quote are of the same letter.
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

/** For each beginning of the text how long a shorter beginning it ends with. */
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
/** Accents, signs of vowels, and the parts of a Korean syllable behind its first. */
const OF_ONE_LETTER = /^[\p{M}\u1160-\u11ff]$/u;
/** Scripts that do not put spaces between words, or hang particles onto them. */
const UNSPACED =
  /^[\p{sc=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}\p{sc=Hangul}]$/u;
