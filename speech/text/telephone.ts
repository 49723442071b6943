import { parseNumericDate } from './dates.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { followsCue, isCounted, sayDigitGroups, sayDigits } from './numbers.ts';
import { readMeasure } from './percent-and-units.ts';
import { type Context, isOpen, type Reading, type Token, toToken } from './token.ts';

/**
 * Reads telephone numbers digit by digit with pauses between groups: +91 98765 43210, (415) 555-0100, 1800-123-4567,
 * 98765 43210. Without a plus or brackets the grouping must be that of telephone numbers.
 */
export function readTelephone(at: number, { tokens, language }: Context): Reading | null {
  if (digitsFrom(at, tokens) < FEWEST_DIGITS) return null;
  const groups = groupsFrom(at, tokens);
  let length = groups.reduce((sum, group) => sum + group.length, 0);
  for (let words = groups.length; words > 0 && length >= FEWEST_DIGITS; length -= groups[--words]!.length) {
    const written = tokens.slice(at, at + words);
    const text = groups.slice(0, words).join(' ');
    const isSpanish = language.base === 'es' && isSpanishNumber(text, written.at(-1)!, tokens[at + words]);
    if (!isSpanish && !isTelephoneNumber(text, tokens[at - 1], language)) continue;
    const said = groups.slice(0, words).map((group) => sayTelephone(group, language));
    return { spoken: said.map((group, index) => (index === words - 1 || group === '' ? group : `${group},`)) };
  }
  return readLabelled(at, { tokens, language }) ?? readVanity(at, { tokens, language });
}

/** The toll-free 1-800-FLOWERS and 888-GO-FEDEX. */
function readVanity(at: number, { tokens, language }: Context): Reading | null {
  const [, digits = '', name = ''] = VANITY.exec(tokens[at]!.core) ?? [];
  if (digits === '' || language.base !== 'en') return null;
  return { spoken: [`${sayTelephone(digits, language)}, ${name.toLowerCase().replaceAll('-', ' ')}`] };
}

const VANITY = /^((?:1-)?8(?:00|33|44|55|66|77|88))-([A-Z]{2,}(?:-[A-Z]{2,}){0,2})$/;

/** "Phone:+14155550100", without a space. */
function readLabelled(at: number, { tokens, language }: Context): Reading | null {
  const [, label = '', number = ''] = /^(\p{L}{2,12})\.?:([+(\d][\d().-]{6,24})$/u.exec(tokens[at]!.core) ?? [];
  const isTelephone = label !== '' && GROUP.test(number) && isTelephoneNumber(number, toToken(label), language);
  return isTelephone ? { spoken: [`${label}, ${sayTelephone(number, language)}`] } : null;
}

/**
 * Reads numbers in groups digit by digit: 123-45-6789, 2024-05-00123, ZIP codes of nine digits, "code 482-913" and
 * "sort code 20-10-30".
 */
export function readGroupedNumber(at: number, context: Context): Reading | null {
  const { tokens, language } = context;
  const { core } = tokens[at]!;
  if (!/^\d+(?:-\d+)+$/.test(core)) return null;
  const groups = core.split('-');
  if (isCode(groups, at, context)) return { spoken: [sayTelephone(core, language)] };
  // Some voices read dates themselves.
  if (parseNumericDate(core, language) !== null) return null;
  const isZipCode = language.dateOrder === 'month-day' && /^\d{5}-\d{4}$/.test(core) && !groups.every(isRound);
  const isGrouped = groups.length > 2 && groups.join('').length >= FEWEST_DIGITS && !groups.every(isRound);
  return isZipCode || isGrouped ? { spoken: [sayTelephone(core, language)] } : null;
}

/** Unlike "order 150-175 items", "order 100-200 today", "an order in 2023-2024" and "on 20-10-30". */
function isCode(groups: readonly string[], at: number, context: Context): boolean {
  if (!followsCue(at, context)) return false;
  if (groups.every(({ length }) => length >= 3)) return groups.length > 2 || !isQuantity(groups, at, context);
  const isSortCode = groups.length === 3 && groups.every(({ length }) => length === 2);
  return isSortCode && context.tokens.slice(Math.max(0, at - 4), at).some(({ core }) => /^sort$/i.test(core));
}

function isQuantity(groups: readonly string[], at: number, context: Context): boolean {
  const { tokens } = context;
  const [low, high] = groups.map(Number);
  if (low! < high! && groups.every(isRound)) return true;
  if (tokens[at - 1]?.core.toLowerCase() === 'in' && groups.every((group) => /^(?:19|20)\d\d$/.test(group))) {
    return !/^end(?:s|ing)$/i.test(tokens[at - 2]?.core ?? '');
  }
  const isOfThings = isOpen(tokens[at]) && THINGS.test(tokens[at + 1]?.core ?? '');
  return isOfThings || isCounted(at, tokens) || readMeasure(at, context) !== null;
}

/** Words in the plural, unlike verbs. */
const THINGS = /^(?!(?:is|was|has|this|expires|ends|lasts|works|appears)$)[a-z]+s$/;

const MOST_WORDS = 6;
const FEWEST_DIGITS = 7;

/** An upper bound, which rules out most numbers cheaply. */
function digitsFrom(at: number, tokens: readonly Token[]): number {
  let digits = 0;
  for (let word = at; word < Math.min(tokens.length, at + MOST_WORDS); word++) {
    if (!tokens[word]!.hasDigit) break;
    digits += tokens[word]!.clean.length;
  }
  return digits;
}

/** The consecutive words that contain only digits and separators, up to punctuation. */
function groupsFrom(at: number, tokens: readonly Token[]): string[] {
  const groups: string[] = [];
  while (groups.length < MOST_WORDS) {
    const token = tokens[at + groups.length];
    if (token === undefined || !/\d/.test(token.clean)) return groups;
    const { group, isEnd } = groupOf(token);
    const isLead = groups.length === 0 ? BEFORE_NUMBERS.test(token.lead) : token.lead === '' || group.startsWith('(');
    if (!isLead || !GROUP.test(group)) return groups;
    groups.push(group);
    if (isEnd || token.endsParagraph) return groups;
  }
  return groups;
}

/** Quotes, brackets and formatting marks. */
const BEFORE_NUMBERS = /^["“”„«»‹›[{(*_`]*$/;
const GROUP = /^\+?(?:\(\+?\d{1,5}\)-?)?(?:\d{1,12}(?:[-.]\d{2,10}){0,5}-?)?$/;

/** Only the brackets of an area code are part of the number. */
function groupOf({ lead, core, trail }: Token): { group: string; isEnd: boolean } {
  const isAreaCode = lead.endsWith('(') && /^\+?\d{1,5}\)/.test(`${core}${trail}`);
  if (!isAreaCode) return { group: core, isEnd: trail !== '' };
  if (!trail.startsWith(')')) return { group: `(${core}`, isEnd: trail !== '' };
  return { group: `(${core})`, isEnd: trail !== ')' };
}

function isTelephoneNumber(text: string, before: Token | undefined, language: SpokenLanguage): boolean {
  const groups = text.split(/\D+/).filter((group) => group !== '');
  const digits = groups.join('');
  if (digits.length < FEWEST_DIGITS || digits.length > 16) return false;
  if (text.startsWith('+') || text.startsWith('(+')) return true;
  if (/^(\d{1,3}[-. ])?\(\d{2,5}\)/.test(text)) return true;
  const shape = groups.map((group) => group.length).join('-');
  if (groups.length === 1) return /^[6-9]\d{9}$/.test(digits) || (digits.length === 11 && digits.startsWith('0'));
  // Addresses and versions have dots too.
  if (text.includes('.') && !/^\d{3}\.\d{3}\.\d{4}$/.test(text)) return false;
  // Multiples of hundreds are not a telephone number: 100 200 3000.
  if (text.includes(' ') && !CUES.has(before?.core.toLowerCase() ?? '') && groups.every(isRound)) return false;
  if (SHAPES.has(shape)) return true;
  // Aadhaar; without the cue they may be years.
  if (shape === '4-4-4') return language.numberCues.has(before?.core.toLowerCase() ?? '');
  const cue = before?.core.toLowerCase() ?? '';
  // Elsewhere 555-0100 would be a range.
  if (shape === '3-4' && language.dateOrder === 'month-day') return true;
  return CUES.has(cue) || (digits.startsWith('0') && digits.length >= 10 && !text.includes('.'));
}

/** 612 345 678, unless a noun follows. */
function isSpanishNumber(text: string, last: Token, next: Token | undefined): boolean {
  if (!/^[6-9]\d\d( \d{3}){2}$/.test(text) || text.split(' ').every(isRound)) return false;
  return (
    !isOpen(last) || next === undefined || !/^[\p{Sc}\p{L}]/u.test(next.core) || /^(?:o|y|a|en|de)$/.test(next.core)
  );
}

function isRound(group: string): boolean {
  return group.endsWith('00');
}

/** Group lengths: North America, India, toll-free, Britain. */
const SHAPES = new Set([
  ...[
    '3-3-4',
    '4-4-4-4',
    '1-3-3-4',
    '5-5',
    '2-5-5',
    '2-10',
    '4-3-3',
    '4-3-4',
    '5-6',
    '4-6',
    '4-7',
    '3-7',
    '3-8',
    '2-4-4',
  ],
  ...['3-4-4', '4-2-4'],
]);
const CUES = new Set([
  ...['call', 'phone', 'telephone', 'mobile', 'tel', 'dial', 'contact', 'whatsapp', 'fax', 'cell', 'ring', 'sms'],
  ...['फोन', 'फ़ोन', 'मोबाइल', 'कॉल', 'ফোন', 'தொலைபேசி', 'ఫోన్', 'ફોન', 'ಫೋನ್', 'ഫോൺ', 'ਫ਼ੋਨ', 'ଫୋନ', 'فون'],
]);

/** Country codes and grouping of numbers written without separators. */
const INTERNATIONAL: readonly { digits: RegExp; sizes: readonly number[] }[] = [
  { digits: /^1\d{10}$/, sizes: [1, 3, 3, 4] },
  { digits: /^91\d{10}$/, sizes: [2, 5, 5] },
  { digits: /^44\d{10}$/, sizes: [2, 4, 3, 3] },
  { digits: /^(49|33|39|34|61|65|81|86)\d{9}$/, sizes: [2, 3, 3, 3] },
];

/** Reads digits with a pause between groups; other characters only separate. */
export function sayTelephone(text: string, language: SpokenLanguage): string {
  const groups = text.split(/\D+/).filter((group) => group !== '');
  const sizes = /^\(?\+/.test(text)
    ? INTERNATIONAL.find(({ digits }) => digits.test(groups[0] ?? ''))?.sizes
    : undefined;
  if (sizes !== undefined && groups.length === 1) {
    return `${language.plus ?? '+'} ${sayDigitGroups(groups[0]!, language, sizes)}`;
  }
  const said = groups.map((group) => (group.length > 6 ? sayDigitGroups(group, language) : sayDigits(group, language)));
  const plus = /^\(?\+/.test(text) ? `${language.plus ?? '+'} ` : '';
  return `${plus}${said.join(', ')}`.trim();
}
