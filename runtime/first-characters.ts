/** The beginning of a text, of at most this many code points: no character is cut in two, as `slice` may do. */
export function firstCharacters(text: string, most: number): string {
  return [...text].slice(0, most).join('');
}
