import { UNSPACED_SCRIPTS } from '../../runtime/unspaced-scripts.ts';

/**
 * Returns the share of the words of `from` that `to` also contains, each as often; 1 if there are none. Ignores case,
 * apostrophes and the encoding of accents. In scripts without spaces each character counts as a word.
 */
export function shareOfWordsKept(from: string, to: string): number {
  const words = wordsOf(from);
  if (words.length === 0) return 1;
  const left = new Map<string, number>();
  for (const word of wordsOf(to)) left.set(word, (left.get(word) ?? 0) + 1);
  let kept = 0;
  for (const word of words) {
    const count = left.get(word) ?? 0;
    if (count === 0) continue;
    left.set(word, count - 1);
    kept++;
  }
  return kept / words.length;
}

export function wordsOf(text: string): string[] {
  return (
    text
      .normalize('NFC')
      .toLowerCase()
      .replace(/(?<=\p{L})['’](?=\p{L})/gu, '')
      .match(WORD) ?? []
  );
}

const WORD = new RegExp(`[${UNSPACED_SCRIPTS}]\\p{M}*|[[\\p{L}\\p{M}\\p{N}]--[${UNSPACED_SCRIPTS}]]+`, 'gv');
