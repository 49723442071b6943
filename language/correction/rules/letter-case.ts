/** The first letter a capital, also behind quotes; unchanged where there are no capitals. */
export function capitalized(text: string): string {
  return text.replace(/^([^\p{L}]*)(\p{Ll})/u, (_, before: string, letter: string) => before + letter.toUpperCase());
}

/** Has two capitals at least and no small letter: NASA, HELLO; not I. */
export function isShouted(text: string): boolean {
  return /\p{Lu}\P{Lu}*\p{Lu}/u.test(text) && !/\p{Ll}/u.test(text);
}

/** What stands in the place of a word takes its capitals. */
export function inCaseOf(replacement: string, written: string): string {
  if (isShouted(written) && written.length > 3) return replacement.toUpperCase();
  return /^\p{Lu}/u.test(written) ? capitalized(replacement) : replacement;
}
