import type { RecognisedWord } from '../machines/utterances.ts';
import { lettersOf, likeness, type Sounds, soundsOf } from './phonetic-likeness.ts';
import type { Keyword } from './recognizer.ts';
import { textWithWords } from './text-with-words.ts';

/**
 * Replaces words that sound like a keyword by the keyword: "dash would" becomes "Dashwood". Words may be joined or
 * split. Confident words are replaced only by a keyword that sounds the same; existing keywords get the keyword's
 * spelling. Weights: 0 turns a keyword off, 1 requires a close sound, 10 accepts a loose one. Bounded to words times
 * terms comparisons.
 */
export function boostKeywords(
  { text, words }: { text: string; words: readonly RecognisedWord[] },
  keywords: readonly Keyword[],
): { text: string; words: RecognisedWord[] } {
  const terms = keywords.flatMap(termOf);
  if (terms.length === 0 || words.length === 0) return { text, words: [...words] };
  const chosen = withoutOverlap(findMatches(words, terms)).filter((match) => changesAnything(match, words));
  if (chosen.length === 0) return { text, words: [...words] };
  return replaced(text, words, chosen);
}

interface Term {
  parts: readonly string[];
  letters: string;
  sounds: Sounds;
  /** Likeness required of a word with a confidence of one half. */
  requiredLikeness: number;
}

/** Words [from, to) become the term. */
interface Match {
  from: number;
  to: number;
  term: Term;
  /** Likeness above the requirement; infinite if the words are the term. */
  surplus: number;
}

const LONGEST_TERM_WORDS = 6;
/** Terms of one or two letters sound like too many words. */
const SHORTEST_TERM_LETTERS = 3;

function termOf({ term, weight }: Keyword): Term[] {
  const parts = term.split(/\s+/u).filter((part) => part !== '');
  const letters = lettersOf(term);
  if (weight <= 0 || parts.length === 0 || parts.length > LONGEST_TERM_WORDS) return [];
  if (letters.length < SHORTEST_TERM_LETTERS) return [];
  return [{ parts, letters, sounds: soundsOf(term), requiredLikeness: requiredFor(weight, letters.length) }];
}

/** 0.8 for weight 1, 0.65 for 10, towards 1 for 0. Slightly stricter for short words, where one sound weighs more. */
function requiredFor(weight: number, letters: number): number {
  const forWeight = weight < 1 ? 1 - 0.2 * weight : 0.8 - 0.15 * Math.log10(Math.min(10, weight));
  return Math.min(1, forWeight + (letters <= 4 ? 0.05 : 0));
}

/** How much the requirement changes between confidence 0 and 1. */
const CONFIDENCE_RANGE = 0.36;
const UNKNOWN_CONFIDENCE = 0.6;

function findMatches(words: readonly RecognisedWord[], terms: readonly Term[]): Match[] {
  const cores = words.map(({ word }) => lettersOf(word));
  const longest = Math.max(...terms.map((term) => term.parts.length)) + 2;
  const matches: Match[] = [];
  for (let from = 0; from < words.length; from++) {
    for (let to = from + 1; to <= Math.min(words.length, from + longest); to++) {
      if (to > from + 1 && !mayJoin(words[to - 2]!, words[to - 1]!)) break;
      const best = bestTerm({ letters: cores.slice(from, to), words: words.slice(from, to) }, terms);
      if (best !== null) matches.push({ from, to, ...best });
    }
  }
  return matches;
}

/** Not across speakers or the end of a sentence. */
function mayJoin(left: RecognisedWord, right: RecognisedWord): boolean {
  return left.speaker === right.speaker && !/[.?!,;:।。，]$/u.test(left.word);
}

function bestTerm(
  { letters, words }: { letters: readonly string[]; words: readonly RecognisedWord[] },
  terms: readonly Term[],
): { term: Term; surplus: number } | null {
  const joined = letters.join('');
  if (joined.length < 2) return null;
  const sounds = soundsOf(letters.join(' '));
  const lift = CONFIDENCE_RANGE * (meanConfidence(words) - 0.5);
  let best: { term: Term; surplus: number } | null = null;
  for (const term of terms) {
    if (words.length < term.parts.length - 1 || words.length > term.parts.length + 2) continue;
    if (joined === term.letters) return { term, surplus: Number.POSITIVE_INFINITY };
    const required = Math.min(0.97, term.requiredLikeness + lift);
    const surplus = likeness(sounds, term.sounds, required) - required;
    if (surplus >= 0 && surplus > (best?.surplus ?? -1)) best = { term, surplus };
  }
  return best;
}

function meanConfidence(words: readonly RecognisedWord[]): number {
  return words.reduce((sum, { confidence }) => sum + (confidence ?? UNKNOWN_CONFIDENCE), 0) / words.length;
}

/** Best first; of equal ones, the one with more words. */
function withoutOverlap(matches: Match[]): Match[] {
  const taken = new Set<number>();
  return matches
    .toSorted((a, b) => (a.surplus === b.surplus ? b.to - b.from - (a.to - a.from) : b.surplus - a.surplus))
    .filter(({ from, to }) => {
      const places = Array.from({ length: to - from }, (_, index) => from + index);
      if (places.some((place) => taken.has(place))) return false;
      for (const place of places) taken.add(place);
      return true;
    })
    .toSorted((a, b) => a.from - b.from);
}

function changesAnything({ from, to, term }: Match, words: readonly RecognisedWord[]): boolean {
  return rewritten(words.slice(from, to), term).some(({ word }, index) => word !== words[from + index]?.word);
}

function replaced(text: string, words: readonly RecognisedWord[], matches: readonly Match[]) {
  const out: RecognisedWord[] = [];
  const replacements: { from: number; to: number; words: readonly string[] }[] = [];
  let next = 0;
  for (const { from, to, term } of matches) {
    out.push(...words.slice(next, from));
    const spoken = rewritten(words.slice(from, to), term);
    out.push(...spoken);
    replacements.push({ from, to, words: spoken.map(({ word }) => word) });
    next = to;
  }
  out.push(...words.slice(next));
  return { text: textWithWords(text, words, replacements), words: out };
}

/** The term's words with the timing and the surrounding punctuation of the replaced words. */
function rewritten(recognised: readonly RecognisedWord[], term: Term): RecognisedWord[] {
  const before = /^[^\p{L}\p{N}]*/u.exec(recognised[0]!.word)![0];
  const after = /[^\p{L}\p{M}\p{N}]*$/u.exec(recognised.at(-1)!.word)![0];
  const last = term.parts.length - 1;
  const written = term.parts.map((part, index) => `${index === 0 ? before : ''}${part}${index === last ? after : ''}`);
  if (recognised.length === written.length) {
    return recognised.map((word, index) => {
      const isSame = lettersOf(word.word) === lettersOf(written[index]!);
      const spelling = isSame ? bestCased(word.word, written[index]!) : written[index]!;
      return { ...word, word: spelling, original: isSame ? word.original : coreOf(word.word) };
    });
  }
  const original = recognised.map(({ word }) => coreOf(word)).join(' ');
  const startMs = recognised[0]!.startMs;
  const durationMs = recognised.at(-1)!.endMs - startMs;
  const lengths = term.parts.map((part) => Math.max(1, part.length));
  const whole = lengths.reduce((sum, length) => sum + length, 0);
  let spoken = 0;
  return written.map((word, index) => {
    const fromMs = startMs + Math.round((durationMs * spoken) / whole);
    spoken += lengths[index]!;
    const toMs = startMs + Math.round((durationMs * spoken) / whole);
    return { ...recognised[0]!, word, startMs: fromMs, endMs: toMs, confidence: leastConfidence(recognised), original };
  });
}

/** Takes the term's capitals, and keeps those at the start of a sentence. */
function bestCased(recognised: string, term: string): string {
  return recognised === recognised.toLowerCase() ? term : recognised;
}

function coreOf(word: string): string {
  return word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{M}\p{N}]+$/gu, '');
}

function leastConfidence(words: readonly RecognisedWord[]): number | null {
  const known = words.flatMap(({ confidence }) => (confidence === null ? [] : [confidence]));
  return known.length === 0 ? null : Math.min(...known);
}
