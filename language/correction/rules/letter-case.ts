/** Capitalizes the first letter, also after quotes. Scripts without capitals stay unchanged. */
export function capitalized(text: string): string {
  return text.replace(/^([^\p{L}]*)(\p{Ll})/u, (_, before: string, letter: string) => before + letter.toUpperCase());
}

/** At least two capitals and no small letter: NASA, HELLO; not I. */
export function isShouted(text: string): boolean {
  return /\p{Lu}\P{Lu}*\p{Lu}/u.test(text) && !/\p{Ll}/u.test(text);
}

/** Gives a replacement the capitals of the word it replaces. */
export function inCaseOf(replacement: string, written: string): string {
  if (isShouted(written) && written.length > 3) return replacement.toUpperCase();
  return /^\p{Lu}/u.test(written) ? capitalized(replacement) : replacement;
}
