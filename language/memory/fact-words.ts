import { unspacedParts } from './unspaced.ts';

/**
 * Returns a text's words for comparison, without case, accents and common endings. Languages without spaces are
 * compared by letters.
 */
export function factWords(text: string): Set<string> {
  const words = new Set<string>();
  const plain = text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase();
  for (const [word] of plain.matchAll(/[\p{L}\p{N}]+/gu)) {
    for (const { text: part, isUnspaced } of unspacedParts(word)) {
      if (isUnspaced) for (const letter of part) words.add(letter);
      else if (!STOP_WORDS.has(part)) words.add(stemOf(part));
    }
  }
  return words;
}

/** Share of the words that are among the others, 0 to 1; 0 for no words. */
export function shareAmong(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  if (words.size === 0) return 0;
  let found = 0;
  for (const word of words) if (others.has(word)) found += 1;
  return found / words.size;
}

/** Removes endings of number and tense, so that `prefers` equals `prefer`. */
function stemOf(word: string): string {
  if (word.length < 5) return word;
  return word.replace(/(?:ies|ied)$/, 'y').replace(/(?:ing|ed|es|s)$/, '');
}

const STOP_WORDS = new Set(
  'a an and are as at be been but by for from had has have he her his i in is it its me my not of on or our she that the their them they this to was we were will with you your user'.split(
    ' ',
  ),
);
