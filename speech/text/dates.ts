import { ENGLISH_MONTHS } from './languages/english.ts';
import { longDate } from './languages/icu-names.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { isDeterminer, readFraction, sayNumber } from './numbers.ts';
import { type Context, isOpen, type Reading, type Token } from './token.ts';

export interface CalendarDate {
  day: number;
  /** From 1. */
  month: number;
  year: number | null;
}

/** Reads 2026-11-21, 21/11/2026, 21-Nov-2026, Nov 21, 2026, 21st March 2026, 1990s, 2019-20. */
export function readDate(at: number, context: Context): Reading | null {
  return (
    readNumericDate(at, context) ??
    readSlashedRange(at, context) ??
    readDayAndMonth(at, context) ??
    readMonthFirst(at, context) ??
    readDayFirst(at, context) ??
    readYears(at, context)
  );
}

function readNumericDate(at: number, { tokens, language }: Context): Reading | null {
  const { core, hasDigit } = tokens[at]!;
  if (!hasDigit) return null;
  const [, from = '', until = ''] = (language.to !== null && ISO_INTERVAL.exec(core)) || [];
  const ends = [from, until].map((end) => {
    const date = parseNumericDate(end, language);
    return date && sayDate(date, language);
  });
  if (!ends.includes(null)) return { spoken: [ends.join(` ${language.to} `)] };
  const date = parseNumericDate(core, language) ?? parseHyphenatedDate(core, language);
  if (date === null) return null;
  const spoken = sayDateAt(at, date, { tokens, language });
  return spoken === null ? null : { spoken: [spoken] };
}

/** ISO 8601: 2026-11-28/2026-12-01. */
const ISO_INTERVAL = /^(\d{4}-\d\d-\d\d)\/(\d{4}-\d\d-\d\d)$/;

/** Says "the" once, in "the 21/11/2026" too. */
export function sayDateAt(at: number, date: CalendarDate, { tokens, language }: Context): string | null {
  const spoken = sayDate(date, language);
  return tokens[at - 1]?.core.toLowerCase() === 'the' ? (spoken?.replace(/^the /, '') ?? null) : spoken;
}

/** "On 5/6", "Tue, 5/6", "date: 5/6", "from 12/24 to 1/2" and "by 12/25", but "on 3/4 inch pipe", "cut by 1/2" and "on 24/7". */
function readDayAndMonth(at: number, { tokens, language }: Context): Reading | null {
  if (language.base !== 'en' || slashedAt(at, tokens) === null) return null;
  const row = slashedRow(at, tokens);
  // The day of 2001 has a reading of its own.
  if (row.length === 1 && tokens[at]!.core === '9/11') return null;
  const cue = tokens[row[0]! - 1]?.core.toLowerCase() ?? '';
  const numbers = row.map((place) => slashedAt(place, tokens)!);
  const areFractions = numbers.every(([first, second]) => Number(first) < Number(second) && Number(second) <= 10);
  const verb = cue === 'on' ? (tokens[row[0]! - 2]?.core ?? '') : '';
  if (areFractions && BEFORE_SHARES.test(verb)) return null;
  const isCued = isDateCued(row[0]!, tokens);
  if (!isCued && (areFractions || !BEFORE_CLEAR_DATES.test(cue))) return null;
  const end = row.at(-1)!;
  const next = isOpen(tokens[end]) ? tokens[end + 1]?.core.toLowerCase() : undefined;
  if (next !== undefined && !AFTER_DATES.test(next)) return null;
  const dates = numbers.map((written) => parseSlashed(written, language));
  const date = dates[row.indexOf(at)] ?? null;
  const spoken = date === null || dates.includes(null) ? null : sayDate(date, language);
  return spoken === null ? null : { spoken: [spoken] };
}

/** "On 5/6", "Tue 5/6" and "date: 5/6", but "to date 1/2" and the month and year of "expiry date 11/28". */
function isDateCued(at: number, tokens: readonly Token[]): boolean {
  const [before = '', cue = ''] = [at - 2, at - 1].map((place) => tokens[place]?.core ?? '');
  if (/^date$/i.test(cue))
    return !/[.!?]/.test(tokens[at - 1]!.trail) && !/^(?:to|exp|expiry|expiration)$/i.test(before);
  return BEFORE_DATES.test(cue.toLowerCase()) || WEEKDAYS.has(cue);
}

/** "12/24-1/2" and "on 1/4-1/5", but "1/4-1/2", which rises, and "1/2-1/4 cup". */
function readSlashedRange(at: number, { tokens, language }: Context): Reading | null {
  const token = tokens[at]!;
  const match = language.base === 'en' ? /^(\d{1,2})\/(\d{1,2})[-–](\d{1,2})\/(\d{1,2})$/.exec(token.core) : null;
  if (match === null) return null;
  const [, from = '', of = '', until = '', ofUntil = ''] = match;
  const both: Slashed[] = [
    [from, of],
    [until, ofUntil],
  ];
  const isRising = Number(from) * Number(ofUntil) < Number(until) * Number(of);
  const isShare = isOpen(token) && AFTER_SHARES.test(tokens[at + 1]?.core ?? '');
  const areMeasured = both.every(([part, whole]) => MEASURED.test(whole) && isReduced(Number(part), Number(whole)));
  const areFractions = isShare || (isRising && areMeasured && !isDateCued(at, tokens));
  const fractions = both.map((written) => {
    const alone = tokens.with(at, { ...token, core: written.join('/') });
    return areFractions ? (readFraction(at, { tokens: alone, language })?.spoken[0] ?? null) : null;
  });
  const dates = both.map((written) => {
    const date = parseSlashed(written, language);
    return date && sayDate(date, language);
  });
  const said = [fractions, dates].find((each) => !each.includes(null));
  return said === undefined ? null : { spoken: [said.join(` ${language.to} `)] };
}

/** Denominators of recipes and rulers. */
const MEASURED = /^(?:[234568]|16|32|64)$/;
const AFTER_SHARES =
  /^(?:of|cups?|teaspoons?|tsp|tablespoons?|tbsp|inch(?:es)?|miles?|pounds?|lbs?|ounces?|oz|pints?|quarts?|gallons?|hours?|full)$/;

function isReduced(part: number, whole: number): boolean {
  return ![2, 3, 5].some((factor) => part % factor === 0 && whole % factor === 0);
}

type Slashed = readonly [first: string, second: string];

/** The numbers of 5/6, but not of 24/7 and 1/2". */
function slashedAt(at: number, tokens: readonly Token[]): Slashed | null {
  const { core = '', lead = '', trail = '' } = tokens[at] ?? {};
  const [, first, second] = /^(\d{1,2})\/(\d{1,2})$/.exec(core) ?? [];
  const areInches = lead === '' && /^["”]/.test(trail);
  return first === undefined || second === undefined || core === '24/7' || areInches ? null : [first, second];
}

/** In the order of the language; the other order if only that is possible. */
function parseSlashed([first, second]: Slashed, { dateOrder }: SpokenLanguage): CalendarDate | null {
  const dayFirst = { day: first, month: second, year: null };
  const monthFirst = { day: second, month: first, year: null };
  const [usual, other] = dateOrder === 'day-month' ? [dayFirst, monthFirst] : [monthFirst, dayFirst];
  return toDate(usual) ?? toDate(other);
}

/** Places of all numbers of "5/6, 5/7 and 5/8" or "12/24 to 1/2". */
function slashedRow(at: number, tokens: readonly Token[]): number[] {
  const row = [at];
  const before = (place: number) => [place - 1, place - 2].find((each) => nextSlashed(each, tokens) === place);
  for (let place = before(at); place !== undefined && row.length < LONGEST_ROW; place = before(place)) {
    row.unshift(place);
  }
  for (let place = nextSlashed(at, tokens); place !== null && row.length < LONGEST_ROW; ) {
    row.push(place);
    place = nextSlashed(place, tokens);
  }
  return row;
}

function nextSlashed(at: number, tokens: readonly Token[]): number | null {
  const isJoined = /^(?:and|or|to|until|till|through)$/.test(tokens[at + 1]?.core ?? '');
  const next = isJoined ? at + 2 : at + 1;
  const isRow = slashedAt(at, tokens) !== null && slashedAt(next, tokens) !== null;
  return isRow && (isJoined || tokens[at]!.trail === ',') ? next : null;
}

const LONGEST_ROW = 8;
const BEFORE_DATES = /^(?:on|(?:mon|tues|wednes|thurs|fri|satur|sun)day)$/;
/** "Focused on 2/3", but not "agreed on 2/3" and "save on 2/3". */
const BEFORE_SHARES =
  /^(?:bas(?:e|es|ed|ing)|focus(?:es|ed|ing)?|depend(?:s|ed|ing)?|rel(?:y|ies|ied|ying)|insist(?:s|ed|ing)?)$/i;
const BEFORE_CLEAR_DATES = /^(?:by|until|till|before|after|since|due|from)$/;
const AFTER_DATES =
  /^(?:at|and|or|from|to|until|before|after|because|if|with|when|for|in|morning|afternoon|evening|night|i|we|you|he|she|they|it|your|our)$/;

/** Null for languages whose engines read dates themselves. */
export function sayDate(date: CalendarDate, language: SpokenLanguage): string | null {
  if (language.phrases !== null) return language.phrases.date(date);
  const { year, month, day } = date;
  return year === null ? null : longDate(language.base, { year, month, day });
}

/** Year first, or in the order of the language; the other order if only that is possible. */
export function parseNumericDate(text: string, language: SpokenLanguage): CalendarDate | null {
  const iso = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/.exec(text);
  if (iso !== null) return toDate({ year: iso[1]!, month: iso[3]!, day: iso[4]! });
  const written = /^(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})$/.exec(text);
  if (written === null) return null;
  const [, first = '', separator, second = '', year = ''] = written;
  // 1.2.26 may be a version or a section.
  if (separator === '.' && year.length === 2) return null;
  const dayFirst = { day: first, month: second, year };
  const monthFirst = { day: second, month: first, year };
  return language.dateOrder === 'day-month'
    ? (toDate(dayFirst) ?? toDate(monthFirst))
    : (toDate(monthFirst) ?? toDate(dayFirst));
}

/** 02-May-2026 and 2-MAY-26. Null for languages whose engines read dates themselves. */
function parseHyphenatedDate(text: string, language: SpokenLanguage): CalendarDate | null {
  const [, day = '', name = '', year = ''] = /^(\d{1,2})-([A-Z][A-Za-z]{2,8})-(\d{4}|\d{2})$/.exec(text) ?? [];
  const month = language.months === null ? undefined : ENGLISH_MONTH_NAMES.get(name);
  return month === undefined ? null : toDate({ day, month: String(month), year });
}

/** Two-digit years are 1950 to 2049. */
export function toDate(written: { day: string; month: string; year: string | null }): CalendarDate | null {
  const day = Number(written.day);
  const month = Number(written.month);
  if (!(day >= 1 && day <= 31 && month >= 1 && month <= 12)) return null;
  if (written.year === null) return { day, month, year: null };
  const digits = Number(written.year);
  const year = written.year.length > 2 ? digits : digits + (digits < 50 ? 2000 : 1900);
  return { day, month, year };
}

/** Nov 21, 2026; November 21st; Nov 2026. */
function readMonthFirst(at: number, { tokens, language }: Context): Reading | null {
  const { numbers } = language;
  const month = monthOf(tokens[at], language);
  if (month === null || numbers === null || language.base !== 'en') return null;
  const next = tokens[at + 1];
  if (next === undefined || !closes(tokens[at]!, '.')) return null;
  const name = language.months![month - 1]!;
  const year = yearOf(next);
  if (year !== null) return { spoken: [name, numbers.year(year)] };
  const day = dayOf(next);
  const ordinal = day === null ? sayDays(next, language) : numbers.ordinal(day);
  if (ordinal === null || (isOpen(next) && monthOf(tokens[at + 2], language) !== null)) return null;
  const following = closes(next, ',') ? yearOf(tokens[at + 2]) : null;
  return { spoken: following === null ? [name, ordinal] : [name, ordinal, numbers.year(following)] };
}

/** "June 5-7". */
function sayDays({ core }: Token, { numbers, to }: SpokenLanguage): string | null {
  const days = /^(\d{1,2})[-–](\d{1,2})$/.exec(core)?.slice(1).map(Number) ?? [];
  const [from = 0, until = 0] = days;
  if (from < 1 || until <= from || until > 31) return null;
  return `${numbers!.ordinal(from)} ${to} ${numbers!.ordinal(until)}`;
}

/** 21 Nov 2026, 21st of March, 21 नवंबर 2026. */
function readDayFirst(at: number, { tokens, language }: Context): Reading | null {
  const { numbers } = language;
  const token = tokens[at]!;
  const day = token.hasDigit ? dayOf(token) : null;
  if (day === null || numbers === null || !isOpen(token)) return null;
  const month = monthOf(tokens[at + 1], language);
  if (month === null) return null;
  const isEnglish = language.base === 'en';
  const ordinal = numbers.ordinal(day)!;
  const isAfterThe = tokens[at - 1]?.core.toLowerCase() === 'the';
  const dayName = isEnglish ? `${isAfterThe ? '' : 'the '}${ordinal} of` : numbers.cardinal(day, null);
  const monthName = language.months![month - 1]!;
  const year = /^[.,]?$/.test(tokens[at + 1]!.trail) && !tokens[at + 1]!.endsParagraph ? yearOf(tokens[at + 2]) : null;
  return { spoken: year === null ? [dayName, monthName] : [dayName, monthName, numbers.year(year)] };
}

/** 1990s, '90s, 1980s-90s; 2019-20, 1914-1918. */
function readYears(at: number, { tokens, language }: Context): Reading | null {
  const { numbers } = language;
  const { core, hasDigit } = tokens[at]!;
  if (!hasDigit || numbers === null) return null;
  const decades = language.base === 'en' && !isSeconds(at, tokens) ? DECADES.exec(core) : null;
  if (decades !== null) {
    const said = decades.slice(1).filter((decade) => decade !== undefined);
    return { spoken: [said.map((decade) => pluralOf(numbers.year(Number(decade)))).join(' to ')] };
  }
  const decade = language.base === 'hi' ? /^((?:1[1-9]|20)\d0)s$/.exec(core) : null;
  if (decade !== null) return { spoken: [`${numbers.year(Number(decade[1]))} के दशक`] };
  const span = /^((?:19|20)\d\d)[-–]((?:19|20)\d\d|\d\d)$/.exec(core);
  if (span === null || language.to === null) return null;
  const [, from = '', until = ''] = span;
  if (until.length === 2 && Number(until) <= Number(from.slice(2))) return null;
  const second = until.length === 4 ? numbers.year(Number(until)) : numbers.cardinal(Number(until), null);
  return { spoken: [`${numbers.year(Number(from))} ${language.to} ${second}`] };
}

const DECADE = "((?:1[1-9]|20)(?:00|[1-9]0)|[1-9]0)['’]?s";
/** 10s-20s are seconds. */
const DECADES = new RegExp(`^(?!10s[-–])${DECADE}(?:[-–]['’]?${DECADE})?$`);

/**
 * "Retry in 10s", "5m 30s", "a timeout of 60s" and "a 30s delay", but "the over 60s", "in 80s clothes" and "the best of
 * 90s", and neither "10s of thousands", "born in 90s" nor "£200 in 20s".
 */
function isSeconds(at: number, tokens: readonly Token[]): boolean {
  const { core, lead } = tokens[at]!;
  const [earlier = '', before = ''] = [at - 2, at - 1].map((place) => tokens[place]?.core.toLowerCase() ?? '');
  if (!/^[1-9]0s$/.test(core) || lead !== '' || DECADE_WORDS.test(before)) return false;
  if (isOpen(tokens[at - 1]) && /^[1-5]/.test(core) && /^\d{1,2}m(?:ins?)?$/.test(before)) return true;
  const next = isOpen(tokens[at]) ? (tokens[at + 1]?.core.toLowerCase() ?? '') : '';
  if (isCount(at, tokens, next)) return false;
  if (core === '10s' && !isDeterminer(tokens[at - 1])) return true;
  if (LASTS_SECONDS.test(next)) return true;
  const isAlone = next === '' || (AFTER_SECONDS.test(next) && !/0s$/.test(tokens[at + 2]?.core ?? ''));
  return isAlone && (SECONDS_FOLLOW.test(before) || SECONDS_FOLLOW_TWO.test(`${earlier} ${before}`));
}

/** Notes and cards of ten, tens of thousands, and decades in which people lived. */
function isCount(at: number, tokens: readonly Token[], next: string): boolean {
  const before = tokens[at - 1]?.core.toLowerCase() ?? '';
  const near = tokens.slice(Math.max(0, at - 4), at).map(({ core }) => core.toLowerCase());
  if (next === 'of' && /^(?:thousands|millions|billions|lakhs|crores)$/i.test(tokens[at + 2]?.core ?? '')) return true;
  if (before === 'size' || (COUNTS.test(before) && /^(?:|and|or|please|for|from)$/.test(next))) return true;
  return before === 'in' && near.some((word) => COUNTED_IN.test(word));
}

const COUNTS = /^(?:two|three|four|five|six|seven|eight|nine|several|many|some)$/;
const COUNTED_IN = /^(?:\p{Sc}\d.*|pounds|dollars|euros|rupees|cash|count|counted|counting|born|raised|grew|lived)$/u;
const DECADE_WORDS = /^(?:early|mid|late|low|lower|high|upper)$/;
const SECONDS_FOLLOW =
  /^(?:in|after|for|every|each|within|than|about|around|another|only|least|next|last|first|final|wait(?:s|ed|ing)?|take[sn]?|took|last(?:s|ed)|timeout)$/;
const SECONDS_FOLLOW_TWO =
  /^(?:(?:up|set|limited|reduced|increased|changed) to|(?:timeout|delay|interval|limit|pause|maximum|minimum|duration|length) of)$/;
const LASTS_SECONDS =
  /^(?:timeout|delay|interval|limit|pause|silence|break|wait|ad|advert|clip|video|spot|countdown|window|ago|later|left|long|each)$/;
const AFTER_SECONDS =
  /^(?:and|or|to|before|after|until|for|on|at|with|then|if|when|while|by|in|from|per|the|a|between|because|so)$/;

function pluralOf(year: string): string {
  return year.endsWith('y') ? `${year.slice(0, -1)}ies` : `${year}s`;
}

/** Expands a weekday only before a date, because sun and sat are words. */
export function readWeekday(at: number, { tokens, language }: Context): Reading | null {
  if (language.base !== 'en') return null;
  const { core } = tokens[at]!;
  const [from, until] = core.split(/[-–]/);
  if (until !== undefined && core.length <= 11) {
    const [first, last] = [from!, until].map((word) => WEEKDAYS.get(word) ?? MONTHS.get(word));
    return first === undefined || last === undefined ? null : { spoken: [`${first} to ${last}`] };
  }
  const name = WEEKDAYS.get(core);
  if (name !== undefined && isSpan(at - 1, tokens)) return { spoken: [name], fullStop: 'may-end' };
  const next = tokens[at + 1];
  if (name === undefined || next === undefined) return null;
  const leads =
    monthOf(next, language) !== null ||
    dayOf(next) !== null ||
    startsDateOrTime(at + 1, { tokens, language }) ||
    next.core.startsWith('-') ||
    next.core === '–';
  return leads ? { spoken: [name], fullStop: 'never-ends' } : null;
}

/** Whether the dash is between two days or hours, as in "Mon - Fri, 9:00 - 5 pm". Three in a row are a list. */
export function isSpan(dash: number, tokens: readonly Token[]): boolean {
  const [from, until] = [tokens[dash - 1], tokens[dash + 1]];
  if (from === undefined || until === undefined || !isDash(dash, tokens)) return false;
  const mayHaveStop = WEEKDAYS.has(from.core) || /m$/i.test(from.core);
  if (!(from.trail === '' || (mayHaveStop && from.trail === '.')) || tokens[dash]!.endsParagraph) return false;
  if (isDay(from) && isDay(until)) {
    const isThird = isDash(dash - 2, tokens) && isDay(tokens[dash - 3]);
    return !isThird && !(isDash(dash + 2, tokens) && isDay(tokens[dash + 3]));
  }
  const start = dash - (MERIDIEM.test(from.core) ? 2 : 1);
  const end = dash + (MERIDIEM.test(tokens[dash + 2]?.core ?? '') ? 2 : 1);
  const isHour = HOUR.test(from.core) || (start < dash - 1 && tokens[start]?.hasDigit === true);
  const isUntilHour = HOUR.test(until.core) || (end > dash + 1 && /^\d{1,2}$/.test(until.core));
  const before = tokens[start - 2]?.core ?? '';
  const isThird = isDash(start - 1, tokens) && (HOUR.test(before) || MERIDIEM.test(before));
  return isHour && isUntilHour && !isThird && !isDash(end + 1, tokens);
}

/** A dash between words, unlike the mark of an item of a list. */
function isDash(at: number, tokens: readonly Token[]): boolean {
  return DASH.test(tokens[at]?.clean ?? '') && tokens[at - 1]?.endsParagraph === false;
}

function isDay(token: Token | undefined): boolean {
  const core = token?.core ?? '';
  return WEEKDAYS.has(core) || WEEKDAY_NAMES.includes(core);
}

const DASH = /^[-–—]$/;
const HOUR = /^(?:\d{1,2}:\d\d(?:[ap]\.?m)?|\d{1,2}[ap]\.?m|noon|midnight)$/i;
const MERIDIEM = /^[ap]\.?m$/i;

/** "Sat 11/30" and "Sat 10-2", but "Sat 1/2 of the time" and "Sat 10-15 minutes" start with a verb. */
function startsDateOrTime(at: number, context: Context): boolean {
  const { tokens } = context;
  if (tokens[at]!.core.includes('/')) return readDate(at, context) !== null;
  const lasts = isOpen(tokens[at]) && DURATIONS.test(tokens[at + 1]?.core ?? '');
  return TIME.test(tokens[at]!.core) && !lasts;
}

/** 10:30, 9am, 10-2 */
const TIME = /^(?!\d+$)\d{1,2}(?::\d\d)?(?:[ap]m?)?(?:[-–]\d{1,2}(?::\d\d)?(?:[ap]m?)?)?$/i;
const DURATIONS = /^(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days|weeks|months|years)$/;
const WEEKDAY_NAMES = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const WEEKDAYS = new Map([
  ...WEEKDAY_NAMES.map((name) => [name.slice(0, 3), name] as const),
  ['Tues', 'Tuesday'],
  ['Thurs', 'Thursday'],
]);

/** Three-letter names, written with a capital and not ambiguous. */
const MONTHS: ReadonlyMap<string, string> = new Map(ENGLISH_MONTHS.map((name) => [name.slice(0, 3), name]));

/** From 1. English months work in every language, as people in India write them. */
function monthOf(token: Token | undefined, language: SpokenLanguage): number | null {
  if (token === undefined || language.months === null) return null;
  const own = language.base === 'en' ? -1 : language.months.indexOf(token.core);
  if (own >= 0) return own + 1;
  return ENGLISH_MONTH_NAMES.get(token.core) ?? null;
}

/** With a capital, or all capitals: may and march are words. */
const ENGLISH_MONTH_NAMES = new Map(
  ENGLISH_MONTHS.flatMap((name, index) =>
    [name, name.slice(0, 3), ...(name === 'September' ? ['Sept'] : [])].flatMap((written) => [
      [written, index + 1] as const,
      [written.toUpperCase(), index + 1] as const,
    ]),
  ),
);

function dayOf(token: Token | undefined): number | null {
  const match = /^(\d{1,2})(?:st|nd|rd|th)?$/.exec(token?.core ?? '');
  const day = Number(match?.[1] ?? 0);
  return day >= 1 && day <= 31 ? day : null;
}

function yearOf(token: Token | undefined): number | null {
  return token !== undefined && /^(?:1[1-9]|20)\d\d$/.test(token.core) ? Number(token.core) : null;
}

function closes(token: Token, mark: '.' | ','): boolean {
  return !token.endsParagraph && (token.trail === '' || token.trail === mark);
}

/** @param format W3C: some of d, m and y in the order written. Null if the text is not such a date. */
export function parseDateAs(format: string, text: string): CalendarDate | null {
  const parts = text.split(/[-/.,\s]+/).filter((part) => part !== '');
  if (parts.length !== format.length || parts.some((part) => !/^\d{1,4}$/.test(part))) return null;
  const at = (letter: string) => parts[format.indexOf(letter)] ?? null;
  const day = at('d');
  const month = at('m');
  return day === null || month === null ? null : toDate({ day, month, year: at('y') });
}

/** For formats without the day or the month. */
export function sayPartialDate(format: string, text: string, language: SpokenLanguage): string | null {
  const parts = text.split(/[-/.,\s]+/).filter((part) => part !== '');
  if (parts.length !== format.length || parts.some((part) => !/^\d{1,4}$/.test(part))) return null;
  const said = [...format].map((letter, index) => {
    const number = Number(parts[index]);
    if (letter === 'm') return language.months?.[number - 1] ?? null;
    if (letter === 'y') return language.numbers?.year(number) ?? parts[index]!;
    return (
      language.numbers?.ordinal(number) ??
      sayNumber({ negative: false, whole: String(number), decimals: null, grouping: null }, language)
    );
  });
  return said.includes(null) ? null : said.join(' ');
}
