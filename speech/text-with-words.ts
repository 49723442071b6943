/**
 * Replaces words of a text and keeps its punctuation and spacing. If text and words disagree, because an upstream
 * normalises one of them, returns the joined words.
 */
export function textWithWords(
  text: string,
  words: readonly { word: string }[],
  replacements: readonly { from: number; to: number; words: readonly string[] }[],
): string {
  const places = placesOf(text, words);
  if (places === null) return joinedWords(words, replacements);
  let out = '';
  let next = 0;
  for (const { from, to, words: written } of replacements) {
    out += text.slice(next, places[from]!.start) + written.join(' ');
    next = places[to - 1]!.end;
  }
  return out + text.slice(next);
}

/** Positions of the words in the text, in order; null unless text and words correspond exactly. */
function placesOf(text: string, words: readonly { word: string }[]): { start: number; end: number }[] | null {
  const places: { start: number; end: number }[] = [];
  let next = 0;
  for (const { word } of words) {
    const start = text.indexOf(word, next);
    if (start < 0 || /[\p{L}\p{N}]/u.test(text.slice(next, start))) return null;
    next = start + word.length;
    places.push({ start, end: next });
  }
  return /[\p{L}\p{N}]/u.test(text.slice(next)) ? null : places;
}

function joinedWords(
  words: readonly { word: string }[],
  replacements: readonly { from: number; to: number; words: readonly string[] }[],
): string {
  const written = words.map(({ word }) => [word]);
  for (const { from, to, words: term } of replacements) {
    written.fill([], from, to);
    written[from] = [...term];
  }
  return written.flat().join(' ');
}
