import { COMMON_ENGLISH } from './language-words.ts';
import { capitalized } from './letter-case.ts';
import { type FindMailLine, isName } from './mail-lines.ts';
import { indexAfter, wordAfter, wordBefore } from './neighbours.ts';
import { PROPER_NAMES, PROPER_PAIRS } from './proper-names.ts';
import { sentencesOf } from './sentences.ts';
import { fixed, lookup, type Rule, TOKENS_PER_SLICE, type Token, word } from './token.ts';

interface Capitals {
  /** Returns the mail line that contains a token. */
  mailLineAt: FindMailLine;
}

/**
 * Capitalizes sentences, I, days, months, languages, places and titles. Changes only words all in lower case and never
 * lowers a letter: SHOUTING and iPhone are deliberate.
 */
export function addCapitals({ mailLineAt }: Capitals): Rule {
  return function* (tokens) {
    const out = [...tokens];
    for (let at = 0; at < tokens.length; at++) {
      if (at % TOKENS_PER_SLICE === 0) yield;
      const lower = lookup(tokens[at]);
      if (lower !== tokens[at]!.text.replaceAll('’', "'")) continue;
      const proper =
        properName(tokens, at, lower) ?? (isName(tokens, at, mailLineAt(at)) ? capitalized(tokens[at]!.text) : null);
      if (proper !== null) out[at] = word(proper);
    }
    for (const [index, { first }] of (yield* sentencesOf(tokens, mailLineAt)).entries()) {
      if (index % TOKENS_PER_SLICE === 0) yield;
      const here = out[first]!;
      if (here.kind === 'word' && !/\p{Lu}/u.test(here.text)) {
        out[first] = here.isFixed ? fixed(capitalized(here.text)) : word(capitalized(here.text));
      }
    }
    return out;
  };
}

function properName(tokens: readonly Token[], at: number, lower: string): string | null {
  const { text } = tokens[at]!;
  if (/^i(?:'(?:m|ve|ll|d))?$/.test(lower)) return isPronoun(tokens, at) ? `I${text.slice(1)}` : null;
  const bare = lower.endsWith("'s") ? lower.slice(0, -2) : lower;
  const proper = PROPER_NAMES.get(bare);
  if (proper !== undefined) return isJoined(tokens, at) ? null : proper + text.slice(bare.length);
  const followsStop = tokens[at - 1]?.kind === 'space' && tokens[at - 2]?.text === '.';
  const after = wordAfter(tokens, lower === 'st' && tokens[at + 1]?.text === '.' ? at + 1 : at).replace(/'s$/, '');
  const before = followsStop && lookup(tokens[at - 3]) === 'st' ? 'st' : wordBefore(tokens, at);
  if (PROPER_PAIRS.get(lower)?.has(after) || PROPER_PAIRS.get(before)?.has(bare)) return capitalized(text);
  if (TITLES.has(lower)) return isTitle(tokens, at) ? capitalized(text) : null;
  if (MONTHS_AND_MORE.has(lower)) return isMonth(tokens, at, lower) ? capitalized(text) : null;
  return followsTitle(tokens, at) && lower.length > 1 && !COMMON_ENGLISH.has(lower) ? capitalized(text) : null;
}

/** Excludes i/o, (i), i = 0. */
function isPronoun(tokens: readonly Token[], at: number): boolean {
  const next = tokens[at + 1];
  if (isOperator(tokens[indexAfter(tokens, at)]) || (tokens[at - 1]?.kind === 'space' && isOperator(tokens[at - 2]))) {
    return false;
  }
  if (next?.kind !== 'mark') return !(tokens[at - 1]?.kind === 'mark' && /[/\\=&@-]$/.test(tokens[at - 1]!.text));
  return /^(?:[,.;:!?…"”—–]|\.\.\.)/.test(next.text) && !/^[(/\\]$/.test(tokens[at - 1]?.text ?? '');
}

function isOperator(at: Token | undefined): boolean {
  return at?.kind === 'mark' && /^(?:[=+<>*/%&|^~]|\*+)$/.test(at.text);
}

/** Parts of other names: english-course, path/india. */
function isJoined(tokens: readonly Token[], at: number): boolean {
  return /[/\\=&@_]$/.test(tokens[at - 1]?.text ?? '') || /^[/\\=@_]/.test(tokens[at + 1]?.text ?? '');
}

function isTitle(tokens: readonly Token[], at: number): boolean {
  const behind = tokens[at + 1]?.text === '.' ? at + 1 : at;
  const next = tokens[indexAfter(tokens, behind)];
  return next?.kind === 'word' && !COMMON_ENGLISH.has(next.text.toLowerCase());
}

function followsTitle(tokens: readonly Token[], at: number): boolean {
  if (tokens[at - 1]?.kind !== 'space') return false;
  const before = tokens[at - 2]?.text === '.' ? tokens[at - 3] : tokens[at - 2];
  return TITLES.has(lookup(before));
}

/** May, March, August and short names, beside a number or after "in". */
function isMonth(tokens: readonly Token[], at: number, lower: string): boolean {
  const before = tokens[at - 1]?.kind === 'space' ? tokens[at - 2] : undefined;
  const next = tokens[indexAfter(tokens, tokens[at + 1]?.text === '.' ? at + 1 : at)];
  if (next?.kind === 'number') {
    const isVerb = before?.kind === 'word' && !BEFORE_DATES.has(lookup(before));
    if (lower !== 'may' || (!isVerb && DAY_OR_YEAR.test(next.text))) return true;
  }
  // The 15th of August.
  if (
    lookup(before) === 'of' &&
    tokens[at - 3]?.kind === 'space' &&
    /\d(?:st|nd|rd|th)?$/.test(tokens[at - 4]?.text ?? '')
  )
    return true;
  if (before?.kind === 'number') return !/^(?:be|have|not|also|need|go|get)$/.test(lookup(next));
  return BEFORE_MONTHS.has(lookup(before)) && !(lower === 'may' && /^(?:be|have|not)$/.test(lookup(next)));
}

const DAY_OR_YEAR = /^\d{1,2}(?:st|nd|rd|th)?$|^(?:19|20)\d\d$/;
const BEFORE_DATES = new Set('on by from to until till since before after of for'.split(' '));
const BEFORE_MONTHS = new Set('in since until till during early late mid'.split(' '));
const MONTHS_AND_MORE = new Set('may march august jan feb mar apr jun jul aug sep sept oct nov dec'.split(' '));
const TITLES = new Set(['mr', 'mrs', 'ms', 'dr', 'prof']);
