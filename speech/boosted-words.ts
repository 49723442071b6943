import type { RecognisedWord } from '../machines/utterances.ts';
import { splitWords } from './engines/timed-words.ts';
import { lettersOf } from './phonetic-likeness.ts';
import type { Keyword } from './recognizer.ts';
import { type Difference, wordDifferences } from './word-differences.ts';

/** Whether any word belongs to a keyword, and so may result from the boost. */
export function hasKeywords(words: readonly RecognisedWord[], keywords: readonly Keyword[]): boolean {
  const letters = lettersOfKeywords(keywords);
  return words.some(({ word }) => letters.has(lettersOf(word)));
}

export interface MarkOptions {
  /** Words of the same utterance, recognised without keywords. */
  unboosted: readonly RecognisedWord[];
  keywords: readonly Keyword[];
  /** How words correspond: by time, or by position between equal words. Default: time. */
  by?: 'time' | 'order';
}

/**
 * Marks keyword words that result from the boost: if the unboosted result has other words there, `original` is set to
 * those, or to '' for none.
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
    const counterpart =
      by === 'time' ? wordsWithin(run, unboosted) : wordsBetween(words, { from, to, unboosted, gaps });
    for (const word of markedRun(run, counterpart)) marked.push(word);
    from = to;
  }
  return marked;
}

function markedRun(run: readonly RecognisedWord[], counterpart: readonly RecognisedWord[]): RecognisedWord[] {
  const textOf = (words: readonly RecognisedWord[]) => words.map(({ word }) => word).join(' ');
  const original = textOf(counterpart);
  if (lettersOf(textOf(run)) === lettersOf(original)) return [...run];
  if (run.length !== counterpart.length) return run.map((word) => ({ ...word, original }));
  return run.map((word, index) => {
    const { word: original } = counterpart[index]!;
    return lettersOf(original) === lettersOf(word.word) ? word : { ...word, original };
  });
}

/** The unboosted words that correspond to the run: the run itself, except for differences. */
function wordsBetween(
  words: readonly RecognisedWord[],
  options: { from: number; to: number; unboosted: readonly RecognisedWord[]; gaps: readonly Difference[] },
): RecognisedWord[] {
  const { from, to, unboosted, gaps } = options;
  const counterpart: RecognisedWord[] = [];
  for (let at = from; at < to; ) {
    const gap = gaps.find((one) => one.from <= at && at < one.to);
    if (gap === undefined) {
      counterpart.push(words[at++]!);
      continue;
    }
    const end = Math.min(to, gap.to);
    const isWordForWord = gap.to - gap.from === gap.unboostedTo - gap.unboostedFrom;
    const offset = gap.unboostedFrom - gap.from;
    counterpart.push(
      ...unboosted.slice(
        isWordForWord ? at + offset : gap.unboostedFrom,
        isWordForWord ? end + offset : gap.unboostedTo,
      ),
    );
    at = end;
  }
  return counterpart;
}

function wordsWithin(run: readonly RecognisedWord[], words: readonly RecognisedWord[]): RecognisedWord[] {
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
