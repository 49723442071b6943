import { readAbbreviation, startsWithCapital } from './abbreviations.ts';
import { readAddress } from './addresses.ts';
import { readCapitals } from './capitals.ts';
import { readDate, readWeekday } from './dates.ts';
import { readKeys } from './keys.ts';
import { continuesAfter } from './languages/full-stops.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { readMoney } from './money.ts';
import { readBareNumber, readFraction, readOrdinal } from './numbers.ts';
import { readMeasure } from './percent-and-units.ts';
import type { ScriptWord } from './script.ts';
import { readRange, readSymbols } from './symbols.ts';
import { readGroupedNumber, readTelephone } from './telephone.ts';
import { isTimeZone, readDuration, readTime, readTimestamp, readTimeZone } from './times.ts';
import { type Context, isOpen, type Reading, type Rule, type Token, toToken } from './token.ts';

export interface ReadWord extends ScriptWord {
  ends: 'sentence' | 'clause' | null;
  /** Read together with the next word, so no cut between them. */
  joinsNext: boolean;
}

/** Converts written words to spoken ones: numbers, money, dates, abbreviations and signs become words. */
export function readWords(tokens: readonly Token[], language: SpokenLanguage): ReadWord[] {
  const context: Context = { tokens, language };
  const words: ReadWord[] = [];
  for (let at = 0; at < tokens.length; ) {
    const reading = isPlain(tokens[at]!, language) ? null : (readHeart(at, context) ?? readingAt(at, context));
    const count = reading?.spoken.length ?? 1;
    for (let index = 0; index < count; index++) {
      const isLast = index === count - 1;
      const said = reading?.spoken[index] ?? tokens[at + index]!.core;
      const spoken =
        index === 0 && reading?.includesLead !== true ? `${comparisonBefore(tokens[at]!, language)}${said}` : said;
      words.push(toWord(at + index, context, { spoken, isLast, fullStop: reading?.fullStop ?? null }));
    }
    at += count;
  }
  return words;
}

/** "I <3 you" and "Thank you <3", but "The score was <3" and "if i <3 and". */
function readHeart(at: number, { tokens, language }: Context): Reading | null {
  const { lead, core, trail, endsParagraph } = tokens[at]!;
  if (language.base !== 'en' || core !== '3' || lead !== '<' || trail.includes('>')) return null;
  const before = tokens[at - 1];
  const next = tokens[at + 1];
  const isObject = /^(?!(?:and|or|then|do|times|is)$)\p{L}/u.test(next?.core ?? '');
  const isCondition = /^(?:if|while|for|where|until|unless)$/i.test(tokens[at - 2]?.core ?? '') && before?.core === 'i';
  if (/^(?:i|we|you|they|who)$/i.test(before?.core ?? '') && isOpen(tokens[at]) && isObject && !isCondition)
    return { spoken: ['love'], includesLead: true };
  const ends = next === undefined || endsParagraph || /[.!?]/.test(trail);
  const isSign =
    before === undefined || /[.!]/.test(before.trail) || /^(?:you|thanks|love|bye|night|all)$/i.test(before.core);
  return ends && isSign ? { spoken: [''], includesLead: true } : null;
}

/** "<5%", ">$10" and "≥18", unless the sign opens a pair of brackets. */
function comparisonBefore({ lead, core, trail }: Token, { base }: SpokenLanguage): string {
  const limit = core === '' ? undefined : LIMITS.get(lead.at(-1) ?? '');
  if (limit !== undefined) return base === 'en' ? `${limit} ` : lead.at(-1)!;
  if (base !== 'en' || !/^\p{Sc}?\.?\d/u.test(core) || trail.includes('>')) return '';
  if (lead.endsWith('<')) return 'less than ';
  return lead.endsWith('>') ? 'more than ' : '';
}

const LIMITS: ReadonlyMap<string, string> = new Map([
  ['≤', 'at most'],
  ['≥', 'at least'],
]);

/** More specific ones first. */
const RULES_WITH_DIGITS: readonly Rule[] = [
  ...[
    readKeys,
    readTelephone,
    readGroupedNumber,
    readTimestamp,
    readDuration,
    readDate,
    readTime,
    readMoney,
    readOrdinal,
    readFraction,
    readMeasure,
    readRange,
  ],
  ...[readBareNumber, readCapitals, readAddress, readSymbols],
];
const RULES_WITHOUT: readonly Rule[] = [
  ...[
    readKeys,
    readDate,
    readWeekday,
    readTimeZone,
    readMoney,
    readAbbreviation,
    readCapitals,
    readAddress,
    readSymbols,
  ],
];

function readingAt(at: number, context: Context): Reading | null {
  const { hasDigit, clean } = context.tokens[at]!;
  for (const rule of hasDigit || /\d/.test(clean) ? RULES_WITH_DIGITS : RULES_WITHOUT) {
    const reading = rule(at, context);
    if (reading !== null) return reading;
  }
  return null;
}

/** Fast path for most words: small letters without a full stop, in no table. */
function isPlain({ core, trail }: Token, language: SpokenLanguage): boolean {
  if (core === '' || trail.startsWith('.')) return false;
  if (core === 'x' || !/^[\p{Ll}\p{Lo}\p{M}]+$/u.test(core)) return false;
  return (
    core.length > 6 ||
    (!/^(?:rs|zł|руб|грн)$/u.test(core) && /^\p{Ll}/u.test(core) && !language.abbreviations.has(core))
  );
}

function toWord(
  at: number,
  { tokens, language }: Context,
  { spoken, isLast, fullStop }: { spoken: string; isLast: boolean; fullStop: Reading['fullStop'] | null },
): ReadWord {
  const token = tokens[at]!;
  const next = tokens[at + 1];
  let marks = token.core === '' ? '' : token.trail;
  if (!isLast && marks.startsWith('.')) marks = marks.slice(1);
  if (isLast && fullStop !== null && fullStop !== undefined && marks.startsWith('.')) {
    // The full stop of an abbreviation also ends a sentence if another begins or nothing follows.
    const mayBegin = fullStop === 'may-end' && next !== undefined && !isTimeZone(at + 1, tokens);
    const isEnd = next === undefined || token.endsParagraph || (mayBegin && startsWithCapital(next));
    // "Downing St., London"
    if (!isEnd || /^\.[,;:]/.test(marks)) marks = marks.slice(1);
  }
  const punctuation = spokenPunctuation(marks);
  const said = speakable(spoken);
  return {
    written: token.written,
    spoken: said === '' ? '' : joinPunctuation(said, punctuation, next),
    phonemes: null,
    ends: token.endsParagraph ? 'sentence' : endOf(punctuation, token, { next, base: language.base }),
    joinsNext: !isLast || (/^[-–—]$/.test(token.core) && said === language.to),
  };
}

/** A word whose pronunciation the markup determines. */
export function givenWord(written: string, spoken: string, phonemes: string | null = null): ReadWord {
  return { written, spoken: speakable(spoken), phonemes, ends: null, joinsNext: false };
}

/** Adds punctuation that directly follows the markup. */
export function withPunctuation(word: ReadWord, marks: string): ReadWord {
  const punctuation = spokenPunctuation(marks);
  const token = toToken(word.written);
  return {
    ...word,
    written: `${word.written}${marks}`,
    spoken: word.spoken === '' ? '' : joinPunctuation(word.spoken, punctuation, undefined),
    ends: endOf(punctuation, token, { next: undefined, base: null }),
  };
}

function endOf(
  punctuation: string,
  { core }: Token,
  { next, base }: { next: Token | undefined; base: string | null },
): ReadWord['ends'] {
  if (/[!?।॥۔؟。！？]/u.test(punctuation)) return 'sentence';
  // "z. B. Hunde", "usw. und", "Nr. 5": no sentence begins with a small letter, or with a number after so short a word.
  if (/[.…]/.test(punctuation)) {
    if (punctuation === '.' && next !== undefined && base !== null && continuesAfter(core, base)) return null;
    if (next !== undefined && (/^\p{Ll}/u.test(next.core) || (next.hasDigit && /^\p{L}{1,3}$/u.test(core))))
      return null;
    return next !== undefined && /^\p{Ll}$/u.test(core) ? null : 'sentence';
  }
  return punctuation !== '' || /^[–—]$/.test(core) ? 'clause' : null;
}

/** The trailing punctuation that affects speech, once. A closing bracket becomes a comma. */
function spokenPunctuation(trail: string): string {
  if (trail === '') return '';
  if (/\.{2,}|…/.test(trail)) return '…';
  const marks = trail
    .replace(/[^.,;:!?।॥۔،؛؟。，！？；：、]/gu, '')
    .replace(/(.)\1+/gu, '$1')
    .slice(0, 3);
  return marks === '' && /[)\]）】]/.test(trail) ? ',' : marks;
}

function joinPunctuation(spoken: string, punctuation: string, next: Token | undefined): string {
  if (punctuation !== '')
    return /[.,]$/.test(spoken) && spoken.at(-1) === punctuation[0] ? spoken : `${spoken}${punctuation}`;
  const opens = next !== undefined && /^[([（【]/.test(next.lead) && next.core !== '';
  return opens && !/\p{P}$/u.test(spoken) ? `${spoken},` : spoken;
}

/** Removes what no engine may receive, whatever a rule returned: markup, quotes, control characters, emoji. */
function speakable(spoken: string): string {
  if (/^[A-Za-z]+$/.test(spoken)) return spoken;
  const said = spoken.replace(UNSPEAKABLE, ' ').replace(/\s+/g, ' ').trim();
  return /[\p{L}\p{N}\p{S}%&@+–]/u.test(said) ? said : '';
}

const UNSPEAKABLE =
  /[<>[\]{}|\\`^*_~"“”«»#]|\p{Cc}|\p{Extended_Pictographic}|[\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}\u20e3\u2028\u2029]/gu;
