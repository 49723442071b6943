/**
 * Writes a correct text as somebody types in a hurry: each kind of error at each of its places with the same chance, drawn
 * from a generator that always draws the same.
 *
 * - a word with a capital loses it; so does I
 * - an apostrophe is left out
 * - a comma is left out, or gets its space before instead of behind
 * - the mark at the end of a sentence is left out at the end of the text, else its space
 */
export function seedErrors(text: string, { chance, seed }: { chance: number; seed: number }): string {
  const next = generator(seed);
  const happens = () => next() < chance;
  const words = text.split(' ').map((word) => {
    let typed = /^["(]?\p{Lu}/u.test(word) && happens() ? word.toLowerCase() : word;
    if (typed.includes("'") && happens()) typed = typed.replace("'", '');
    return typed;
  });
  let typed = words.join(' ');
  typed = typed.replace(/, /g, (comma) => (happens() ? (next() < 0.5 ? ' ' : ' ,') : comma));
  typed = typed.replace(/(?<=\p{L}{3})[.?] (?=\S)/gu, (mark) => (happens() ? mark.trim() : mark));
  return happens() ? typed.replace(/[.?]$/, '') : typed;
}

/** Mulberry32: 0 to 1, the same for the same seed. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
