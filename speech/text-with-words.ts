import { placesOf } from './word-places.ts';

/**
 * Replaces words of a text and keeps its punctuation and spacing. If text and words disagree, because an upstream
 * normalises one of them, returns the joined words.
 */
export function textWithWords(
  text: string,
  words: readonly { word: string }[],
  replacements: readonly { from: number; to: number; words: readonly string[] }[],
): string {
  const places = placesOf(words, text, LETTER_OR_DIGIT);
  if (places === null) return joinedWords(words, replacements);
  let out = '';
  let next = 0;
  for (const { from, to, words: written } of replacements) {
    out += text.slice(next, places[from]!.start) + written.join(' ');
    next = places[to - 1]!.end;
  }
  return out + text.slice(next);
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

function joinedWords(
  words: readonly { word: string }[],
  replacements: readonly { from: number; to: number; words: readonly string[] }[],
): string {
  const written = words.map(({ word }) => [word]);
  for (const { from, to, words: term } of replacements) {
    written.fill([], from, to);
    written[from] = [...term];
  }
  return written.flat().join(' ');
}
