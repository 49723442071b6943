import {
  ABBREVIATIONS,
  ACRONYMS,
  BEFORE_NUMBERS,
  DAYS,
  ENDING_ABBREVIATIONS,
  MONTHS,
  SHORTHAND,
  STREETS,
  TITLES,
  UNITS_OF_TIME,
} from './abbreviation-words.ts';
import { capitalized } from './letter-case.ts';
import { endsLine, indexAfter, wordAfter, wordBefore } from './neighbours.ts';
import { isWordLike, lookup, type Rule, TOKENS_PER_SLICE, type Token, token, word } from './token.ts';

export interface Expanded {
  abbreviations: boolean;
  /** u, r, ur: ambiguous outside messages. */
  letters: boolean;
}

/** Expands shorthand (thx, btw), and abbreviations that are unambiguous. */
export function expandAbbreviations(expanded: Expanded): Rule {
  return function* (tokens) {
    const out: Token[] = [];
    for (let at = 0; at < tokens.length; at++) {
      if (at % TOKENS_PER_SLICE === 0) yield;
      const found = tokens[at]!.isFixed ? null : find(tokens, at, expanded);
      if (found === null) {
        out.push(tokens[at]!);
        continue;
      }
      out.push(...tokensOf(found.text));
      at += found.length - 1;
      // Drops the abbreviation's full stop, unless it also ends the sentence.
      if (found.hasStop && !mayEnd(tokens, at)) at++;
    }
    return out;
  };
}

interface Found {
  text: string;
  /** In tokens, without the full stop. */
  length: number;
  hasStop: boolean;
}

function find(tokens: readonly Token[], at: number, expanded: Expanded): Found | null {
  const { kind, text } = tokens[at]!;
  if ((kind !== 'word' && kind !== 'number') || text.length > 12) return null;
  if (/[@/\\-]/.test(tokens[at - 1]?.text ?? '')) return null;
  return (
    (expanded.abbreviations
      ? (findWith(tokens, at) ?? findByContext(tokens, at) ?? findIn(ABBREVIATIONS, tokens, at))
      : null) ??
    findIn(SHORTHAND, tokens, at) ??
    (expanded.letters ? findLetters(tokens, at) : null)
  );
}

function findIn(table: ReadonlyMap<string, string>, tokens: readonly Token[], at: number): Found | null {
  const { text } = tokens[at]!;
  const lower = text.toLowerCase();
  const full = table.get(lower);
  if (full === undefined || isJoined(tokens[at + 1])) return null;
  const isFirst = isSentenceStart(tokens, at);
  const isAcronym = ACRONYMS.has(lower) && text === text.toUpperCase();
  const isCapital = /^\p{Lu}/u.test(text) && (isFirst || !isAcronym);
  const spelled = full.endsWith(',') && /^[,.:;)]/.test(tokens[at + 1]?.text ?? '') ? full.slice(0, -1) : full;
  return {
    text: isCapital ? capitalized(spelled) : spelled,
    length: 1,
    hasStop: hasStop(tokens, at) && !text.endsWith('.'),
  };
}

function findWith(tokens: readonly Token[], at: number): Found | null {
  if (tokens[at]!.text !== 'w' || tokens[at + 1]?.text !== '/') return null;
  if (tokens[at + 2]?.kind === 'space') return { text: 'with', length: 2, hasStop: false };
  const isWithout = tokens[at + 2]?.text === 'o' && tokens[at + 3]?.kind === 'space';
  return isWithout ? { text: 'without', length: 3, hasStop: false } : null;
}

function findByContext(tokens: readonly Token[], at: number): Found | null {
  const { text } = tokens[at]!;
  const stop = hasStop(tokens, at);
  const next = tokens[indexAfter(tokens, stop ? at + 1 : at)];
  const before = tokens[at - 1]?.kind === 'space' ? tokens[at - 2] : undefined;
  const found = (full: string | undefined): Found | null =>
    full === undefined ? null : { text: full, length: 1, hasStop: stop };
  const isBeforeName = next?.kind === 'word' && /^\p{Lu}\p{Ll}/u.test(next.text);
  const isBehindName = before?.kind === 'word' && /^\p{Lu}/u.test(before.text) && before.text !== 'I';
  const isBehindNumber = before?.kind === 'number';
  const isBeforeNumber = next?.kind === 'number';
  const unit = UNITS_OF_TIME.get(text.toLowerCase());
  if (unit !== undefined && (isBehindNumber || unit[0] === unit[1])) {
    const isOne = before?.text === '1' || /^an?$/.test(wordBefore(tokens, at - 2));
    return found(unit[isOne ? 0 : 1]);
  }
  if (STREETS.has(text) && isBehindName && !/^(?:The|Hi|Dear|Hello)$/.test(before.text))
    return found(STREETS.get(text));
  if (TITLES.has(text) && stop && isBeforeName) return found(TITLES.get(text));
  if (MONTHS.has(text) && (isBeforeNumber || isBehindNumber)) return found(MONTHS.get(text));
  if (DAYS.has(text) && stop) return found(DAYS.get(text));
  if (!stop || !isBeforeNumber) return null;
  const numbered = BEFORE_NUMBERS.get(text.toLowerCase());
  return found(numbered !== undefined && /^\p{Lu}/u.test(text) ? capitalized(numbered) : numbered);
}

/** In messages: how r u, c u, ur right. */
function findLetters(tokens: readonly Token[], at: number): Found | null {
  const { text } = tokens[at]!;
  const before = wordBefore(tokens, at);
  const after = wordAfter(tokens, at);
  const found = (full: string) => ({ text: full, length: 1, hasStop: false });
  if (isJoined(tokens[at + 1])) return null;
  switch (text) {
    case 'u':
      return NAMED_BY_LETTERS.has(before) ? null : found('you');
    case 'r':
      return PERSONS.has(before) || ASKED.has(before) || PERSONS.has(after) ? found('are') : null;
    case 'c':
      return after === 'u' || after === 'you' ? found('see') : null;
    case 'k':
    case 'kk':
      return isSentenceStart(tokens, at) && (endsLine(tokens, at) || THANKS.has(after)) ? found('okay') : null;
    case 'ur':
      return found(after === '' || BEHIND_YOU_ARE.has(after) || /.{3}ing$/.test(after) ? "you're" : 'your');
    case 'bc':
      return PERSONS.has(after) || after === 'of' ? found('because') : null;
    default:
      return null;
  }
}

const NAMED_BY_LETTERS = new Set('vitamin plan option type the letter grade hepatitis class group section'.split(' '));
const PERSONS = new Set('u you i we they he she it'.split(' '));
const ASKED = new Set('how where what who why when'.split(' '));
const THANKS = new Set('thx thanks thank cool great see'.split(' '));
const BEHIND_YOU_ARE = new Set(
  'right wrong welcome late early the a an so not very too here there in on at gonna amazing awesome funny crazy my never always'.split(
    ' ',
  ),
);

function hasStop(tokens: readonly Token[], at: number): boolean {
  return tokens[at + 1]?.kind === 'mark' && tokens[at + 1]!.text === '.';
}

/** Whether the full stop after a token ends a line, or a sentence because a capital follows. */
function mayEnd(tokens: readonly Token[], at: number): boolean {
  if (endsLine(tokens, at + 1)) return true;
  if (/^["”’)\]]/.test(tokens[at + 2]?.text ?? '')) return true;
  const next = tokens[indexAfter(tokens, at + 1)];
  const may = ENDING_ABBREVIATIONS.has(`${tokens[at]!.text.toLowerCase()}.`);
  return may && next?.kind === 'word' && /^\p{Lu}/u.test(next.text);
}

/** dept-wide, dept/office */
function isJoined(next: Token | undefined): boolean {
  return next?.kind === 'mark' && /^[-/\\&@=]/.test(next.text);
}

export function isSentenceStart(tokens: readonly Token[], at: number): boolean {
  let before = at - 1;
  while (before >= 0 && /^(?:[\s"'“‘([*_]+)$/.test(tokens[before]!.text) && tokens[before]!.kind !== 'break') before--;
  const mark = tokens[before];
  if (mark === undefined || mark.kind === 'break' || mark.kind === 'lead' || mark.kind === 'block') return true;
  return (
    mark.kind === 'mark' &&
    /^[.!?…]/.test(mark.text) &&
    !isWordLike(tokens[before + 1]) &&
    lookup(tokens[before - 1]) !== 'e.g'
  );
}

function tokensOf(text: string): Token[] {
  return text
    .split(/( |,)/)
    .filter((piece) => piece !== '')
    .map((piece) => (piece === ' ' ? token('space', piece) : piece === ',' ? token('mark', piece) : word(piece)));
}
