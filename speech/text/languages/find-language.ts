import { english } from './english.ts';
import { indian } from './indian.ts';
import type { SpokenLanguage } from './language.ts';
import { otherLanguage } from './other.ts';

/** @param tag BCP 47 in any case */
export function findLanguage(tag: string): SpokenLanguage {
  const lower = tag.toLowerCase();
  const known = languages.get(lower);
  if (known !== undefined) return known;
  const language = lower.split('-')[0] === 'en' ? english(lower) : (indian(lower) ?? otherLanguage(lower));
  // Bounds the cache, because tags also come from texts.
  if (languages.size < MOST_KEPT) languages.set(lower, language);
  return language;
}

const MOST_KEPT = 500;
const languages = new Map<string, SpokenLanguage>();
