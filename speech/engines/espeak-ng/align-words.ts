import type { SpokenWord } from '../../synthesizer.ts';

/** Where the engine began to say something, by the code point of the text that it stands at. */
export interface Mark {
  position: number;
  atMs: number;
}

/**
 * Times of the words as they are written. The engine marks what it says: several for a number, none for a dash. A word
 * begins with its first mark and ends where the next begins; one that is not said has no length.
 */
export function alignWords(
  text: string,
  { marks, durationMs }: { marks: readonly Mark[]; durationMs: number },
): SpokenWord[] {
  const written = writtenWords(text);
  const starts: (number | null)[] = written.map(() => null);
  for (const { position, atMs } of marks) {
    const index = written.findLastIndex(({ start }) => start <= position);
    if (index >= 0) starts[index] ??= atMs;
  }
  const words: SpokenWord[] = [];
  let endMs = durationMs;
  for (let index = written.length - 1; index >= 0; index--) {
    // Marks of a text that the engine reorders, such as a currency and its amount, are not in order.
    const startMs = Math.min(starts[index] ?? endMs, endMs);
    words.unshift({ word: written[index]!.word, startMs, endMs });
    endMs = startMs;
  }
  return words;
}

function writtenWords(text: string): { word: string; start: number }[] {
  const words: { word: string; start: number }[] = [];
  let codePoints = 0;
  let counted = 0;
  for (const { 0: word, index } of text.matchAll(/\S+/gu)) {
    codePoints += [...text.slice(counted, index)].length;
    counted = index;
    words.push({ word, start: codePoints });
  }
  return words;
}
