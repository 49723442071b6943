/**
 * Formats letters to be spelled. Engines spell them with full stops in between; spaces would turn a single A into the
 * article.
 */
export function letters(written: string): string {
  return [...written.toUpperCase()].map((letter) => `${letter}.`).join('');
}
