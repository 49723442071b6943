import type { RecognisedWord } from '../machines/utterances.ts';
import { splitWords } from './engines/timed-words.ts';
import { lettersOf } from './phonetic-likeness.ts';
import type { Keyword } from './recognizer.ts';

/** Whether a word of a keyword was recognised, so that it may be there because of the boost. */
export function hasKeywords(words: readonly RecognisedWord[], keywords: readonly Keyword[]): boolean {
  const letters = lettersOfKeywords(keywords);
  return words.some(({ word }) => letters.has(lettersOf(word)));
}

/**
 * Marks the words of keywords that are there because of the boost: where other words are recognised without it, these become `original`,
 * or '' where nothing is.
 * @param unboosted the words of the same utterance, recognised without keywords
 */
export function markBoosted(
  words: readonly RecognisedWord[],
  { unboosted, keywords }: { unboosted: readonly RecognisedWord[]; keywords: readonly Keyword[] },
): RecognisedWord[] {
  const letters = lettersOfKeywords(keywords);
  const marked: RecognisedWord[] = [];
  for (let from = 0; from < words.length; ) {
    if (!letters.has(lettersOf(words[from]!.word))) {
      marked.push(words[from++]!);
      continue;
    }
    const length = words.slice(from).findIndex(({ word }) => !letters.has(lettersOf(word)));
    const run = words.slice(from, length === -1 ? words.length : from + length);
    marked.push(...markedRun(run, heardWithin(run, unboosted)));
    from += run.length;
  }
  return marked;
}

function markedRun(run: readonly RecognisedWord[], heard: readonly RecognisedWord[]): RecognisedWord[] {
  const textOf = (words: readonly RecognisedWord[]) => words.map(({ word }) => word).join(' ');
  if (lettersOf(textOf(run)) === lettersOf(textOf(heard))) return [...run];
  if (run.length !== heard.length) return run.map((word) => ({ ...word, original: textOf(heard) }));
  return run.map((word, index) => {
    const { word: original } = heard[index]!;
    return lettersOf(original) === lettersOf(word.word) ? word : { ...word, original };
  });
}

/** The words of which most was said in the time of the run. */
function heardWithin(run: readonly RecognisedWord[], words: readonly RecognisedWord[]): RecognisedWord[] {
  const [fromMs, toMs] = [run[0]!.startMs, run.at(-1)!.endMs];
  return words.filter(({ startMs, endMs }) => {
    const sharedMs = Math.min(endMs, toMs) - Math.max(startMs, fromMs);
    return sharedMs * 2 > endMs - startMs;
  });
}

function lettersOfKeywords(keywords: readonly Keyword[]): Set<string> {
  return new Set(
    keywords.filter(({ weight }) => weight > 0).flatMap(({ term }) => splitWords(term).map(lettersOf).filter(Boolean)),
  );
}
