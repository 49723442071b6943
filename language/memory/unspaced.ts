/** A letter of a script without spaces, with its marks. Two letters form most words. */
const LETTER =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]\p{M}*/u;
const LETTERS = new RegExp(`(?:${LETTER.source})+`, 'gu');

/** Splits a word where it changes between scripts with and without spaces. */
export function unspacedParts(word: string): { text: string; isUnspaced: boolean }[] {
  if (!LETTER.test(word)) return [{ text: word, isUnspaced: false }];
  const parts: { text: string; isUnspaced: boolean }[] = [];
  let end = 0;
  for (const { 0: text, index } of word.matchAll(LETTERS)) {
    if (index > end) parts.push({ text: word.slice(end, index), isUnspaced: false });
    parts.push({ text, isUnspaced: true });
    end = index + text.length;
  }
  if (end < word.length) parts.push({ text: word.slice(end), isUnspaced: false });
  return parts;
}

/** All pairs of adjacent letters; a single letter stays alone. */
export function pairsOf(unspaced: string): string[] {
  const letters = [...unspaced.matchAll(new RegExp(LETTER.source, 'gu'))].map(([letter]) => letter);
  return letters.length < 2 ? letters : letters.slice(1).map((letter, before) => `${letters[before]}${letter}`);
}
