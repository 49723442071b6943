/**
 * Positions of words in a text, in order, in code units. Null if a word is missing, or if something that `excluded`
 * matches is before, between or after them.
 */
export function placesOf(
  words: readonly { word: string }[],
  text: string,
  excluded: RegExp,
): { start: number; end: number }[] | null {
  const places: { start: number; end: number }[] = [];
  let next = 0;
  for (const { word } of words) {
    const start = text.indexOf(word, next);
    if (start < 0 || excluded.test(text.slice(next, start))) return null;
    next = start + word.length;
    places.push({ start, end: next });
  }
  return excluded.test(text.slice(next)) ? null : places;
}
