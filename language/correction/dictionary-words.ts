import { applyDictionary } from './rules/correct-by-rules.ts';
import type { ApplyDictionary } from './rules/dictionary.ts';
import type { DictionaryEntry } from './text-correction.ts';
import { MOST_CHARACTERS } from './windows.ts';
import { wordsOf } from './words-kept.ts';

/** A part of a text after the dictionary was applied, as sent to a model. */
export interface PreparedPart {
  text: string;
  /** The dictionary's words in the text, with repetitions. */
  words: readonly string[];
  /**
   * `nobody` for a part without letters; `rules` if the dictionary made it too long for a model, or beyond the limit of
   * questions.
   */
  leftTo: 'model' | 'rules' | 'nobody';
}

/**
 * Limits the model requests for one text. Code between parts can make them arbitrarily small; a text without code has
 * at most 27.
 */
const MOST_QUESTIONS = 64;

/**
 * Prepares the parts of one text in order. The dictionary is applied before the model sees a part, so the model cannot
 * misplace its words.
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
 * Entries that also apply to a model's answer, where a corrected misspelling may have become a term. Leaves out entries
 * whose term is part of another entry's replacement, because they would change what the dictionary has put there.
 */
export function lastingEntries(dictionary: readonly DictionaryEntry[]): DictionaryEntry[] {
  const spaced = (text: string) => ` ${wordsOf(text).join(' ')} `;
  const entries = dictionary.map((entry) => ({ entry, term: spaced(entry.term), put: spaced(entry.replacement) }));
  return entries
    .filter((one) => !entries.some((other) => other.put !== one.put && other.put.includes(one.term)))
    .map(({ entry }) => entry);
}

/** Whether each word occurs at least as often as it is listed, ignoring case. */
export function keepsWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  const counts = new Map<string, number>();
  // White space around a replacement may change.
  for (const word of words.map((one) => one.trim().toLowerCase())) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].every(([word, count]) => word === '' || lower.split(word).length > count);
}
