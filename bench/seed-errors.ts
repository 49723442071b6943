import { seededRandom } from '../runtime/seeded-random.ts';

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
  const next = seededRandom(seed);
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
