import type { RecognisedWord } from '../machines/utterances.ts';
import { splitWords } from './engines/timed-words.ts';
import { lettersOf } from './phonetic-likeness.ts';
import type { Keyword } from './recognizer.ts';
import { type Difference, wordDifferences } from './word-differences.ts';

/** Whether a word of a keyword was recognised, so that it may be there because of the boost. */
export function hasKeywords(words: readonly RecognisedWord[], keywords: readonly Keyword[]): boolean {
  const letters = lettersOfKeywords(keywords);
  return words.some(({ word }) => letters.has(lettersOf(word)));
}

export interface MarkOptions {
  /** The words of the same utterance, recognised without keywords. */
  unboosted: readonly RecognisedWord[];
  keywords: readonly Keyword[];
  /** Whether words belong together that were said at the same time, or in the same place between equal words. Default: time. */
  by?: 'time' | 'order';
}

/**
 * Marks the words of keywords that are there because of the boost: where other words are recognised without it, these become `original`,
 * or '' where nothing is.
 */
export function markBoosted(words: readonly RecognisedWord[], options: MarkOptions): RecognisedWord[] {
  const { unboosted, keywords, by = 'time' } = options;
  const gaps = by === 'order' ? wordDifferences(words, unboosted) : [];
  const letters = lettersOfKeywords(keywords);
  const marked: RecognisedWord[] = [];
  for (let from = 0; from < words.length; ) {
    if (!letters.has(lettersOf(words[from]!.word))) {
      marked.push(words[from++]!);
      continue;
    }
    let to = from + 1;
    while (to < words.length && letters.has(lettersOf(words[to]!.word))) to += 1;
    const run = words.slice(from, to);
    const heard = by === 'time' ? heardWithin(run, unboosted) : heardBetween(words, { from, to, unboosted, gaps });
    for (const word of markedRun(run, heard)) marked.push(word);
    from = to;
  }
  return marked;
}

function markedRun(run: readonly RecognisedWord[], heard: readonly RecognisedWord[]): RecognisedWord[] {
  const textOf = (words: readonly RecognisedWord[]) => words.map(({ word }) => word).join(' ');
  const original = textOf(heard);
  if (lettersOf(textOf(run)) === lettersOf(original)) return [...run];
  if (run.length !== heard.length) return run.map((word) => ({ ...word, original }));
  return run.map((word, index) => {
    const { word: original } = heard[index]!;
    return lettersOf(original) === lettersOf(word.word) ? word : { ...word, original };
  });
}

/** What was heard in the place of the run: the run itself, but for what differs. */
function heardBetween(
  words: readonly RecognisedWord[],
  options: { from: number; to: number; unboosted: readonly RecognisedWord[]; gaps: readonly Difference[] },
): RecognisedWord[] {
  const { from, to, unboosted, gaps } = options;
  const heard: RecognisedWord[] = [];
  for (let at = from; at < to; ) {
    const gap = gaps.find((one) => one.from <= at && at < one.to);
    if (gap === undefined) {
      heard.push(words[at++]!);
      continue;
    }
    const end = Math.min(to, gap.to);
    const isWordForWord = gap.to - gap.from === gap.heardTo - gap.heardFrom;
    const offset = gap.heardFrom - gap.from;
    heard.push(
      ...unboosted.slice(isWordForWord ? at + offset : gap.heardFrom, isWordForWord ? end + offset : gap.heardTo),
    );
    at = end;
  }
  return heard;
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
