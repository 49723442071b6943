import { applyDictionary } from './rules/correct-by-rules.ts';
import type { ApplyDictionary } from './rules/dictionary.ts';
import type { DictionaryEntry } from './text-correction.ts';
import { MOST_CHARACTERS } from './windows.ts';
import { wordsOf } from './words-kept.ts';

/** A part of a text with the dictionary's words in it, as a model is asked about it. */
export interface PreparedPart {
  text: string;
  /** Those words, as often as they stand there. */
  words: readonly string[];
  /** No model is asked about what has no letters, what a dictionary has made too long for one, and too many parts. */
  leftTo: 'model' | 'rules' | 'nobody';
}

/** Each is a question of its own; code between them makes parts as small as one likes. A text without has 27 at the most. */
const MOST_QUESTIONS = 64;

/**
 * Prepares the parts of one text, one after the other. A model is only asked about a part once its dictionary's words are
 * there: so it cannot put them where others are.
 */
export function createPreparation(putWords: ApplyDictionary): (part: string) => Generator<void, PreparedPart> {
  let questions = 0;
  return function* (part) {
    const { text, words } = yield* applyDictionary(part, putWords);
    if (!/\p{L}/u.test(text)) return { text, words, leftTo: 'nobody' };
    if (text.length > 2 * MOST_CHARACTERS || questions === MOST_QUESTIONS) return { text, words, leftTo: 'rules' };
    questions++;
    return { text, words, leftTo: 'model' };
  };
}

/**
 * The entries that hold for the answer of a model too, in which a misspelt word may have become one of the dictionary's;
 * without those whose term stands in the replacement of another: what the dictionary has put there is not its to change.
 */
export function lastingEntries(dictionary: readonly DictionaryEntry[]): DictionaryEntry[] {
  const spaced = (text: string) => ` ${wordsOf(text).join(' ')} `;
  const entries = dictionary.map((entry) => ({ entry, term: spaced(entry.term), put: spaced(entry.replacement) }));
  return entries
    .filter((one) => !entries.some((other) => other.put !== one.put && other.put.includes(one.term)))
    .map(({ entry }) => entry);
}

/** Whether each of the words stands there as often as it is named, in whatever case. */
export function keepsWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  const counts = new Map<string, number>();
  // White space around a replacement is not worth an answer.
  for (const word of words.map((one) => one.trim().toLowerCase())) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].every(([word, count]) => word === '' || lower.split(word).length > count);
}
