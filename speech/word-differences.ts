import type { RecognisedWord } from '../machines/utterances.ts';
import { lettersOf } from './phonetic-likeness.ts';

/** Where two lists of words differ: `words` from `from` to `to` are `unboosted` from `heardFrom` to `heardTo`. */
export interface Difference {
  from: number;
  to: number;
  heardFrom: number;
  heardTo: number;
}

/** Between the words that both lists begin and end with. Nobody says so much in an utterance of half a minute. */
const MOST_COMPARED = 1_000;
const MOST_CHARACTERS = 20_000;

/**
 * The differences between the words that both lists have, by the longest common subsequence. None where the lists are too
 * long to compare, since nothing is known of what differs.
 */
export function wordDifferences(
  words: readonly RecognisedWord[],
  unboosted: readonly RecognisedWord[],
): readonly Difference[] {
  const a = words.map(({ word }) => lettersOf(word));
  const b = unboosted.map(({ word }) => lettersOf(word));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [end, heardEnd] = [a.length, b.length];
  while (end > start && heardEnd > start && a[end - 1] === b[heardEnd - 1]) [end, heardEnd] = [end - 1, heardEnd - 1];
  if (Math.max(end, heardEnd) - start > MOST_COMPARED) return [];
  const characters = unboosted.slice(start, heardEnd).reduce((sum, { word }) => sum + word.length, 0);
  if (characters > MOST_CHARACTERS) return [];
  return differencesOf(a.slice(start, end), b.slice(start, heardEnd)).map(({ from, to, heardFrom, heardTo }) => ({
    ...{ from: from + start, to: to + start },
    ...{ heardFrom: heardFrom + start, heardTo: heardTo + start },
  }));
}

function differencesOf(a: readonly string[], b: readonly string[]): Difference[] {
  const width = b.length + 1;
  /** At `[i * width + j]`: how many words the rests of both from `i` and `j` have in common. */
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
  let [i, j, from, heardFrom] = [0, 0, 0, 0];
  const close = () => {
    if (i > from || j > heardFrom) found.push({ from, to: i, heardFrom, heardTo: j });
  };
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      close();
      [from, heardFrom] = [++i, ++j];
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) i += 1;
    else j += 1;
  }
  [i, j] = [a.length, b.length];
  close();
  return found;
}
