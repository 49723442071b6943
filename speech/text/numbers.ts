import { PLACES } from './languages/english-words.ts';
import type { Grouping, SpokenLanguage } from './languages/language.ts';
import { type Context, isOpen, type Reading, type Token, VULGAR_FRACTIONS } from './token.ts';

export interface WrittenNumber {
  negative: boolean;
  /** Only digits. */
  whole: string;
  decimals: string | null;
  /** By the places of its separators; null without any. */
  grouping: Grouping;
}

/** Null if it is not a number by the language's conventions. */
export function parseNumber(text: string, language: SpokenLanguage): WrittenNumber | null {
  if (text.length > 60) return null;
  const mixed = MIXED_NUMBER.exec(text);
  if (mixed !== null) {
    const [, minus, whole, fraction = ''] = mixed;
    return { negative: minus !== '', whole: whole || '0', decimals: VULGAR[fraction]!.decimals, grouping: null };
  }
  const negative = /^[-−]/.test(text);
  const unsigned = negative ? text.slice(1) : text;
  const english = ENGLISH_NUMBER.exec(unsigned);
  if (language.decimalMark === ',' && !/,\d{3}[,.]/.test(unsigned)) {
    const continental = CONTINENTAL_NUMBER.exec(unsigned);
    if (continental === null) return null;
    const [, whole, decimals] = continental;
    return { negative, whole: whole!.replace(/[.'’]/g, ''), decimals: decimals ?? null, grouping: null };
  }
  if (english === null) return null;
  const [, whole = '', decimals] = english;
  const grouping = !whole.includes(',') ? null : /,\d\d,/.test(whole) ? 'indian' : 'western';
  return { negative, whole: whole.replaceAll(',', '') || '0', decimals: decimals ?? null, grouping };
}

const MIXED_NUMBER = new RegExp(`^(-?)(\\d*)([${VULGAR_FRACTIONS}])$`, 'u');
const ENGLISH_NUMBER = /^(\d{1,3}(?:,\d{3})+|\d{1,3}(?:,\d\d)+,\d{3}|\d*(?=\.\d)|\d+)(?:\.(\d+))?$/;
const CONTINENTAL_NUMBER = /^(\d{1,3}(?:[.'’]\d{3})+|\d+)(?:,(\d+))?$/;

/** As a quantity. Numbers with a leading zero or without a name are read digit by digit. */
export function sayNumber(number: WrittenNumber, language: SpokenLanguage, grouping = number.grouping): string {
  const { negative, whole, decimals } = number;
  const { numbers } = language;
  if (numbers === null) {
    const digits = whole.length > MOST_DIGITS ? sayDigits(whole, language) : whole;
    return `${negative ? '-' : ''}${digits}${decimals === null ? '' : `${language.decimalMark}${decimals}`}`;
  }
  const words = [];
  if (negative) words.push(numbers.minus);
  const isName = whole.length > MOST_DIGITS || /^0\d/.test(whole);
  words.push(isName ? sayDigits(whole, language) : numbers.cardinal(Number(whole), grouping));
  if (decimals !== null) words.push(numbers.point, sayDigits(decimals, language));
  return words.join(' ');
}

const MOST_DIGITS = 15;

/** Digit by digit; other characters are skipped. */
export function sayDigits(digits: string, { numbers }: SpokenLanguage): string {
  const names = [];
  for (const digit of digits) {
    if (digit >= '0' && digit <= '9') names.push(numbers?.digits[Number(digit)] ?? digit);
  }
  return names.join(' ');
}

/** Digit by digit with pauses, as people read out long numbers. */
export function sayDigitGroups(digits: string, language: SpokenLanguage, sizes?: readonly number[]): string {
  const groups = [];
  let at = 0;
  for (const size of sizes ?? groupSizes(digits.length, language)) {
    groups.push(sayDigits(digits.slice(at, at + size), language));
    at += size;
  }
  return groups.join(', ');
}

/**
 * Threes before fours, so that no digit is alone. Ten digits in fives, as in India; in American English as telephone
 * numbers.
 */
function groupSizes(length: number, { dateOrder }: SpokenLanguage): number[] {
  if (length <= 5) return [length];
  if (length === 10 && dateOrder === 'day-month') return [5, 5];
  const threes = (4 - (length % 4)) % 4;
  return [...Array<number>(threes).fill(3), ...Array<number>((length - threes * 3) / 4).fill(4)];
}

/**
 * Reads a bare number. Digit by digit: after a word such as "OTP" or "account" from three digits, with a leading zero,
 * and from seven digits without separators. 1900 to 2099 are years, 1100 to 1899 only after a word such as "in".
 * Everything else is a quantity.
 */
export function readBareNumber(at: number, context: Context): Reading | null {
  const { tokens, language } = context;
  const { core, lead } = tokens[at]!;
  const number = parseNumber(core, language);
  if (number === null) return null;
  const spaced = language.decimalMark === ',' ? readSpacedNumber(at, tokens) : null;
  if (spaced !== null) return spaced;
  const { whole, decimals, grouping, negative } = number;
  const isBare = grouping === null && decimals === null && !negative;
  if (isBare && /^\d+$/.test(core)) {
    const isLong = whole.length >= 7;
    if (isLong || (whole.length >= 3 && isName(at, context)) || /^0\d/.test(whole)) {
      return { spoken: [sayDigitGroups(whole, language)] };
    }
    if (language.numbers !== null && whole.length === 4 && lead !== '#' && isYear(Number(whole), at, context)) {
      return { spoken: [language.numbers.year(Number(whole))] };
    }
  }
  const isRupees = RUPEES.has(tokens[at + 1]?.core.toLowerCase() ?? '');
  return { spoken: [sayNumber(number, language, isRupees ? 'indian' : grouping)] };
}

/** 1 234 567, as many languages write it: consumes all groups from the first. */
function readSpacedNumber(at: number, tokens: readonly Token[]): Reading | null {
  if (!/^-?\d{1,3}$/.test(tokens[at]!.core)) return null;
  let last = at;
  while (last < at + 4 && isOpen(tokens[last]) && /^\d{3}(?:,\d+)?$/.test(tokens[last + 1]?.core ?? '')) last++;
  if (last === at || (isOpen(tokens[last]) && /^\d+$/.test(tokens[last + 1]?.core ?? ''))) return null;
  const digits = tokens.slice(at, last + 1).map(({ core }) => core);
  return { spoken: digits.map((_, index) => (index === 0 ? digits.join('') : '')) };
}

function isYear(number: number, at: number, { tokens }: Context): boolean {
  if (number < 1100 || number > 2099) return false;
  return !isCounted(at, tokens) && (number >= 1900 || YEAR_CUES.has(tokens[at - 1]?.core.toLowerCase() ?? ''));
}

/** "2000 people" and "2000 kg". */
export function isCounted(at: number, tokens: readonly Token[]): boolean {
  return tokens[at]!.trail === '' && COUNTED.test(tokens[at + 1]?.core.toLowerCase() ?? '');
}

const RUPEES = new Set(['rupees', 'rupee', 'lakh', 'lakhs', 'crore', 'crores']);
const COUNTED =
  /^(rupees?|dollars?|euros?|pounds?|yen|people|persons?|users?|units?|items?|pieces?|times|days|hours|minutes|seconds|km|kg|miles?|points?|calls?|रुपये|लोग|টাকা|ரூபாய்|రూపాయలు)$/;
const YEAR_CUES = new Set([
  'in',
  'since',
  'of',
  'by',
  'from',
  'until',
  'till',
  'year',
  'before',
  'after',
  'during',
  'circa',
  'सन',
  'सन्',
  'वर्ष',
]);

/** Not a quantity: an order number, 911, a ZIP code (New York, NY 10118), an SMS short code. */
function isName(at: number, context: Context): boolean {
  return followsCue(at, context) || (context.language.base === 'en' && isEnglishName(at, context.tokens));
}

function isEnglishName(at: number, tokens: readonly Token[]): boolean {
  const { core, trail } = tokens[at]!;
  const before = tokens[at - 1];
  if (before === undefined) return false;
  const word = before.core.toLowerCase();
  if (/^(no|nos|number)$/.test(word)) return core.length >= 5;
  if (/^[.!?;]/.test(before.trail)) return false;
  if (core.length === 5 && STATES.has(before.core)) return tokens[at - 2]?.trail === ',';
  if (trail === '' && startsNoun(tokens[at + 1])) return false;
  if (word === 'dial' || (/^(call|ring|phone)$/.test(word) && core.length === 3)) return true;
  return word === 'to' && tokens.slice(Math.max(0, at - 5), at).some((token) => /^(text|sms)$/i.test(token.core));
}

/** "Call 100 people" is a quantity, "call 911 now" is not. */
function startsNoun(token: Token | undefined): boolean {
  return (
    token !== undefined && !/^(now|or|and|in|if|for|from|to|at|when|immediately|right|first|then)$/i.test(token.core)
  );
}

const STATES: ReadonlySet<string> = new Set(
  'AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC PR'.split(
    ' ',
  ),
);

/**
 * Whether one of the three words before it, within the sentence, makes it an identifier: "your order number is 48213".
 */
export function followsCue(at: number, { tokens, language }: Context): boolean {
  let first = at;
  while (first > at - MOST_GROUPS && isLaterGroup(first, tokens)) first--;
  for (let before = first - 1; before >= Math.max(0, first - 3); before--) {
    const { core, trail } = tokens[before]!;
    if (/[.!?।,;]/.test(trail) && !(trail === '.' && /^nos?$/i.test(core))) return false;
    if (language.numberCues.has(core.toLowerCase())) return true;
    // Words allowed between the cue and its number.
    if (!BETWEEN.test(core)) return false;
  }
  return false;
}

const MOST_GROUPS = 5;

/** The second of "482 913", and the second and third of "482 913 500". */
function isLaterGroup(at: number, tokens: readonly Token[]): boolean {
  const before = tokens[at - 1];
  return isOpen(before) && /^\d{3,}$/.test(before.core) && before.core.length === tokens[at]!.core.length;
}

const BETWEEN = /^(|is|no|number|num|#|id|code|-|–|=|are|was|your|as|है|नंबर|संख्या|number's|ends|ending|with|in)$/iu;

/** 1st, 22nd; in Hindi 5वां, 21वीं. */
export function readOrdinal(at: number, { tokens, language }: Context): Reading | null {
  const { core } = tokens[at]!;
  const english = /^(\d{1,4}|\d{1,3},\d{3})(st|nd|rd|th)$/i.exec(core);
  if (english !== null && language.base === 'en') {
    const number = Number(english[1]!.replace(',', ''));
    // "10st" is a weight.
    if (number > 9 && english[2]!.toLowerCase() === 'st' && (number % 10 !== 1 || number % 100 === 11)) return null;
    const spoken = language.numbers?.ordinal(number);
    return spoken === null || spoken === undefined ? null : { spoken: [spoken] };
  }
  const irregular = language.base === 'hi' ? HINDI_ORDINALS.get(core) : undefined;
  if (irregular !== undefined) return { spoken: [irregular] };
  const hindi = /^(\d{1,4})(वां|वाँ|वीं|वें)$/u.exec(core);
  if (hindi === null || language.base !== 'hi') return null;
  const [, digits = '', ending = ''] = hindi;
  const number = Number(digits);
  const stem = number === 6 ? 'छठ' : language.numbers!.cardinal(number, 'indian');
  return { spoken: [number === 6 ? `छठ${ending === 'वीं' ? 'ी' : 'े'}` : `${stem}${ending}`] };
}

const HINDI_ORDINALS: ReadonlyMap<string, string> = new Map([
  ...([
    ['1ला', 'पहला'],
    ['1ली', 'पहली'],
    ['1ले', 'पहले'],
  ] as const),
  ...([
    ['2रा', 'दूसरा'],
    ['2री', 'दूसरी'],
    ['2रे', 'दूसरे'],
  ] as const),
  ...([
    ['3रा', 'तीसरा'],
    ['3री', 'तीसरी'],
    ['3रे', 'तीसरे'],
  ] as const),
  ...([
    ['4था', 'चौथा'],
    ['4थी', 'चौथी'],
    ['4थे', 'चौथे'],
  ] as const),
]);

/** 1/2, ½, 2½; "1 1/2" is read by its parts. */
export function readFraction(at: number, { tokens, language }: Context): Reading | null {
  const { core } = tokens[at]!;
  const { phrases, numbers } = language;
  if (phrases === null || numbers === null) return null;
  if (isOfName(at, tokens)) return null;
  const written = SHORT_MIXED_NUMBER.exec(core);
  const slashed = /^(\d{1,3})[/⁄](\d{1,3})$/.exec(core);
  const [numerator, denominator] =
    written === null ? (slashed?.slice(1).map(Number) ?? []) : VULGAR[written[2]!]!.fraction;
  if (numerator === undefined || denominator === undefined) return null;
  const isUsual = denominator <= 10 || DENOMINATORS.has(denominator);
  if (numerator === 0 || numerator >= denominator || !isUsual) return null;
  const spoken = phrases.fraction(numerator, denominator);
  if (spoken === null) return null;
  if (written !== null && written[1] !== '') {
    return { spoken: [`${numbers.cardinal(Number(written[1]), null)} ${phrases.and} ${article(spoken)}`] };
  }
  const before = tokens[at - 1];
  const followsWhole = isOpen(before) && /^\d{1,3}$/.test(before.core);
  return { spoken: [followsWhole ? `${phrases.and} ${article(spoken)}` : alone(spoken)] };
}

/** "Flat 3/4" and "House No. 2/3", but not "the house 2/3 down the road". */
function isOfName(at: number, tokens: readonly Token[]): boolean {
  const [thing, before] = [tokens[at - 2], tokens[at - 1]].map((token) => token?.core.toLowerCase() ?? '');
  if (PLACES.has(before!)) return !isDeterminer(tokens[at - 2]);
  return /^(?:no|nos|number)$/.test(before!) && PLACES.has(thing!);
}

export function isDeterminer(token: Token | undefined): boolean {
  return /^(?:an?|the|this|that|these|those|each|every|my|your|our|his|her|its|their)$/i.test(token?.core ?? '');
}

/** "half" is "one half" alone and "a half" after a whole number. */
function alone(fraction: string): string {
  return fraction === 'half' ? 'one half' : fraction;
}

function article(fraction: string): string {
  return fraction === 'half' ? 'a half' : fraction;
}

const DENOMINATORS = new Set([12, 16, 20, 32, 64, 100]);
const SHORT_MIXED_NUMBER = new RegExp(`^(\\d{0,3})([${VULGAR_FRACTIONS}])$`, 'u');
/** Decimals replace a fraction before a unit or after a currency. Those of thirds are rounded. */
const VULGAR: Record<string, { fraction: readonly [number, number]; decimals: string }> = {
  '¼': { fraction: [1, 4], decimals: '25' },
  '½': { fraction: [1, 2], decimals: '5' },
  '¾': { fraction: [3, 4], decimals: '75' },
  '⅓': { fraction: [1, 3], decimals: '33' },
  '⅔': { fraction: [2, 3], decimals: '67' },
  '⅛': { fraction: [1, 8], decimals: '125' },
  '⅜': { fraction: [3, 8], decimals: '375' },
  '⅝': { fraction: [5, 8], decimals: '625' },
  '⅞': { fraction: [7, 8], decimals: '875' },
};
