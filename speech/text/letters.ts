/**
 * Letters to be said one by one. With full stops between them engines do; apart, they take a single A for the article.
 */
export function letters(written: string): string {
  return [...written.toUpperCase()].map((letter) => `${letter}.`).join('');
}
