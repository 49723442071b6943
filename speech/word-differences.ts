import type { RecognisedWord } from '../machines/utterances.ts';
import { lettersOf } from './phonetic-likeness.ts';

/** A difference between two lists of words: `words` [from, to) correspond to `unboosted` [heardFrom, heardTo). */
export interface Difference {
  from: number;
  to: number;
  unboostedFrom: number;
  unboostedTo: number;
}

/**
 * Limits of what is compared, after removing the common start and end. More than fits into an utterance of half a
 * minute.
 */
const MOST_COMPARED = 1_000;
const MOST_CHARACTERS = 20_000;

/** Finds the differences by longest common subsequence. Returns none if the lists are too long to compare. */
export function wordDifferences(
  words: readonly RecognisedWord[],
  unboosted: readonly RecognisedWord[],
): readonly Difference[] {
  const a = words.map(({ word }) => lettersOf(word));
  const b = unboosted.map(({ word }) => lettersOf(word));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [end, unboostedEnd] = [a.length, b.length];
  while (end > start && unboostedEnd > start && a[end - 1] === b[unboostedEnd - 1])
    [end, unboostedEnd] = [end - 1, unboostedEnd - 1];
  if (Math.max(end, unboostedEnd) - start > MOST_COMPARED) return [];
  const characters = unboosted.slice(start, unboostedEnd).reduce((sum, { word }) => sum + word.length, 0);
  if (characters > MOST_CHARACTERS) return [];
  return differencesOf(a.slice(start, end), b.slice(start, unboostedEnd)).map(
    ({ from, to, unboostedFrom, unboostedTo }) => ({
      ...{ from: from + start, to: to + start },
      ...{ unboostedFrom: unboostedFrom + start, unboostedTo: unboostedTo + start },
    }),
  );
}

function differencesOf(a: readonly string[], b: readonly string[]): Difference[] {
  const width = b.length + 1;
  /** At `[i * width + j]`: how many words the rests from `i` and `j` have in common. */
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const found: Difference[] = [];
  let [i, j, from, unboostedFrom] = [0, 0, 0, 0];
  const close = () => {
    if (i > from || j > unboostedFrom) found.push({ from, to: i, unboostedFrom, unboostedTo: j });
  };
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      close();
      [from, unboostedFrom] = [++i, ++j];
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) i += 1;
    else j += 1;
  }
  [i, j] = [a.length, b.length];
  close();
  return found;
}
