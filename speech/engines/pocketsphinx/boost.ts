import type { Keyword } from '../../recognizer.ts';
import { pronunciationOf } from './pronunciation.ts';

/** Makes keywords more likely: words missing in the dictionary, and a language model of only the keywords. */
export interface Boost {
  /** Lines to add to the dictionary. */
  dictionary: string;
  /** An ARPA n-gram model, to interpolate with the general one. */
  languageModel: string;
}

/**
 * A term of weight 1 is assumed to be a thousandth of all speech, and one of weight 10 sixty times as likely. After its
 * first word the next is likely.
 */
const LOG10_OF_WEIGHT_0 = -3.2;
const LOG10_PER_WEIGHT = 0.2;
const LOG10_NEXT_WORD = -0.3;
const LOG10_IMPOSSIBLE = -99;
const MOST_WORDS = 500;

/** Null if there is nothing to boost. `hasWord` looks up the dictionary. */
export function boostOf(keywords: readonly Keyword[], hasWord: (word: string) => boolean): Boost | null {
  const unigrams = new Map<string, number>();
  const bigrams = new Map<string, number>();
  const trigrams = new Map<string, number>();
  const pronunciations = new Map<string, string>();
  for (const { term, weight } of keywords) {
    const words = wordsOfTerm(term);
    const isPronounceable = words.every(({ word, spelling }) => {
      if (hasWord(word)) return true;
      const pronunciation = pronunciationOf(spelling);
      if (pronunciation !== null) pronunciations.set(word, pronunciation);
      return pronunciation !== null;
    });
    if (weight <= 0 || !isPronounceable || unigrams.size + words.length > MOST_WORDS) continue;
    words.forEach(({ word }, index) => {
      const first = index === 0 ? LOG10_OF_WEIGHT_0 + LOG10_PER_WEIGHT * Math.min(weight, 10) : LOG10_IMPOSSIBLE;
      unigrams.set(word, Math.max(first, unigrams.get(word) ?? LOG10_IMPOSSIBLE));
      if (index > 0) bigrams.set(`${words[index - 1]!.word} ${word}`, LOG10_NEXT_WORD);
      if (index > 1) trigrams.set(`${words[index - 2]!.word} ${words[index - 1]!.word} ${word}`, LOG10_NEXT_WORD);
    });
  }
  if (unigrams.size === 0) return null;
  return {
    dictionary: [...pronunciations].map(([word, phones]) => `${word} ${phones}\n`).join(''),
    languageModel: arpa([unigrams, bigrams, trigrams]),
  };
}

/** In the dictionary's form. The spelling keeps its capitals, which mark abbreviations. */
function wordsOfTerm(term: string): { word: string; spelling: string }[] {
  const spellings = term.normalize('NFD').match(/[\p{L}\p{M}\p{N}']+/gu) ?? [];
  return spellings
    .map((spelling) => spelling.replaceAll(/\p{M}/gu, ''))
    .map((spelling) => ({ word: spelling.toLowerCase(), spelling }));
}

function arpa(orders: readonly Map<string, number>[]): string {
  const [unigrams, ...longer] = orders;
  const markers: [string, number][] = ['<s>', '</s>', '<UNK>'].map((marker) => [marker, LOG10_IMPOSSIBLE]);
  const filled = [new Map([...markers, ...unigrams!]), ...longer.filter(({ size }) => size > 0)];
  const counts = filled.map(({ size }, index) => `ngram ${index + 1}=${size}\n`).join('');
  const sections = filled.map((ngrams, index) => {
    // All but the highest order may be continued, at no cost.
    const backOff = index === filled.length - 1 ? '' : ' 0.0';
    const lines = [...ngrams].map(([words, log10]) => `${log10.toFixed(4)} ${words}${backOff}\n`).join('');
    return `\n\\${index + 1}-grams:\n${lines}`;
  });
  return `\\data\\\n${counts}${sections.join('')}\n\\end\\\n`;
}
