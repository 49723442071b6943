import { seededRandom } from '../runtime/seeded-random.ts';

/**
 * Adds errors of hurried typing, each kind with the same chance at each place. Reproducible.
 *
 * - a word loses its capital, including I
 * - an apostrophe is left out
 * - a comma is left out, or gets its space before instead of after
 * - the mark at the end of the text is left out; within the text the space after a mark
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
