import { sayNumberInName } from './addresses.ts';
import { readCode } from './capitals.ts';
import { isSpan } from './dates.ts';
import { LETTERED_THINGS } from './languages/english-words.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { followsCue, parseNumber, sayNumber } from './numbers.ts';
import { readGroupedNumber } from './telephone.ts';
import { type Context, isOpen, type Reading, type Token, toToken, VULGAR_FRACTIONS } from './token.ts';

/** Reads 5-10 as "5 to 10", and 9:00-17:00 where the engine reads the hours. */
export function readRange(at: number, { tokens, language }: Context): Reading | null {
  const token = tokens[at]!;
  const joined = /^([\d.,]{1,12})[-–—]([\d.,]{1,12})$/.exec(token.core);
  if (language.to === null) return null;
  if (joined !== null) {
    const spoken = sayRange(joined[1]!, joined[2]!, language);
    return spoken === null ? null : { spoken: [spoken] };
  }
  if (language.numbers === null && /^\d{1,2}:\d\d/.test(token.core)) {
    const hours = /^(\d{1,2}:\d\d)[-–—](\d{1,2}:\d\d)$/.exec(token.core);
    if (hours !== null) return { spoken: [`${hours[1]} ${language.to} ${hours[2]}`] };
    return isSpan(at + 1, tokens) ? { spoken: [token.core, language.to] } : null;
  }
  const dash = tokens[at + 1];
  const high = tokens[at + 2];
  if (!isOpen(token) || dash === undefined || !/^[-–—]$/.test(dash.clean) || high === undefined) return null;
  const low = parseNumber(token.core, language);
  const until = /^\d/.test(high.core) ? parseNumber(/^[\d.,]*\d/.exec(high.core)![0], language) : null;
  if (low === null || until === null || isCalculation(at, tokens) || Number(low.whole) >= Number(until.whole))
    return null;
  return { spoken: [sayNumber(low, language), language.to] };
}

function sayRange(low: string, high: string, language: SpokenLanguage): string | null {
  const from = parseNumber(low, language);
  const to = parseNumber(high, language);
  if (from === null || to === null) return null;
  const isRising = Number(`${from.whole}.${from.decimals ?? 0}`) < Number(`${to.whole}.${to.decimals ?? 0}`);
  // Falling ranges of two digits are scores and hours: 9-5.
  const word = isRising || (from.whole.length <= 2 && language.numbers !== null) ? language.to : null;
  if (word === null || /^0\d/.test(from.whole) || from.whole.length > 7) return null;
  return `${sayNumber(from, language)} ${word} ${sayNumber(to, language)}`;
}

/** An equals sign is near. */
function isCalculation(at: number, tokens: readonly Token[]): boolean {
  return tokens.slice(Math.max(0, at - 1), at + 4).some(({ clean }) => clean === '=');
}

/**
 * Reads signs that stand alone or join words: &, @home, #1, #MakeInIndia, A&B, 2+2=4, 5x3, 24/7. Mostly English only.
 */
export function readSymbols(at: number, context: Context): Reading | null {
  const { tokens, language } = context;
  const { core, clean, trail } = tokens[at]!;
  const signs = SIGNS[language.base];
  if (signs === undefined) return null;
  if (core === '' || core === 'x' || /^[^\p{L}\p{M}\d]+$/u.test(core)) return readSign(at, context, signs);
  if (language.base === 'en' && clean.length <= 60) {
    const special = SPECIAL.get(core.toLowerCase());
    if (special !== undefined) return { spoken: [special] };
    const code = readNumberedCode(at, context);
    if (code !== null) return code;
    const tagged = /^#([\p{L}\d_]+)$/u.exec(core);
    if (tagged !== null) return { spoken: [sayHashtag(tagged[1]!, language)] };
  }
  if (trail.startsWith('.') && core === '') return null;
  return readNumberWithSign(core, language) ?? readMixed(core, signs, language);
}

/** "#A1B2-C3D4", "#12-345", "#1-3" and, after a word such as "order", "#A1B2", but not the hashtag "#COP28". */
function readNumberedCode(at: number, context: Context): Reading | null {
  const { core } = context.tokens[at]!;
  if (!/^#(?=.*[A-Z-])[A-Z\d-]*\d[A-Z\d-]*$/.test(core)) return null;
  const thing = context.tokens[at - 1]?.core.toLowerCase() ?? '';
  const isNamed = core.includes('-') || followsCue(at, context) || LETTERED_THINGS.has(thing) || thing === 'case';
  if (!isNamed) return null;
  const code = { ...context, tokens: context.tokens.with(at, toToken(core.slice(1))) };
  const span = /^#(\d+)-(\d+)$/.exec(core);
  const isRange = span !== null && span[1]!.length === span[2]!.length;
  const reading = readGroupedNumber(at, code) ?? (isRange ? readRange(at, code) : null) ?? readCode(at, code);
  return reading === null ? null : { spoken: [`number ${reading.spoken[0]}`] };
}

/** 2.0.1 and 192.168.1.1, 3:1, 50/50, 2x, 10k, 3M. */
function readNumberWithSign(core: string, language: SpokenLanguage): Reading | null {
  if (language.base !== 'en') return null;
  const say = (digits: string) => saySmallNumberOrQuantity(digits, language);
  const version = /^(v?)(\d{1,5}(?:\.\d{1,5}){2,4})$/.exec(core);
  if (version !== null) {
    const numbers = version[2]!.split('.').map(say);
    return {
      spoken: [`${version[1] === '' ? '' : 'version '}${numbers.join(numbers.length === 4 ? ' dot ' : ' point ')}`],
    };
  }
  const pair = /^(\d{1,3})([:/])(\d{1,3})$/.exec(core);
  if (pair !== null && pair[2] === ':') return { spoken: [`${say(pair[1]!)} to ${say(pair[3]!)}`] };
  if (pair !== null && pair[1] === pair[3]) return { spoken: [`${say(pair[1]!)} ${say(pair[1]!)}`] };
  const rating = /^(\d{1,3}\.\d{1,2})\/(\d{1,3})$/.exec(core);
  if (rating !== null) return { spoken: [`${say(rating[1]!)} out of ${say(rating[2]!)}`] };
  const suffixed = /^([\d.,]{1,12})(x|k|M|mn|bn|cr)\+?$/.exec(core);
  const number = suffixed === null ? null : parseNumber(suffixed[1]!, language);
  return number === null ? null : { spoken: [`${sayNumber(number, language)} ${SUFFIXES.get(suffixed![2]!)}`] };
}

const SUFFIXES = new Map([
  ['x', 'times'],
  ['k', 'thousand'],
  ['M', 'million'],
  ['mn', 'million'],
  ['bn', 'billion'],
  ['cr', 'crore'],
]);

/** A single sign. A repeated one is an ornament. */
function readSign(at: number, { tokens, language }: Context, signs: Record<string, string>): Reading | null {
  const { clean } = tokens[at]!;
  if (clean === 'x') {
    // 12 ft x 10 ft, but also "let x = 5".
    const isBetween = [tokens[at - 1], tokens[at - 2]].some(isNumber) && isNumber(tokens[at + 1]);
    return isBetween ? { spoken: [isCalculation(at, tokens) ? signs['×']! : signs.x!] } : null;
  }
  if (clean === '*' || clean === '<' || clean === '>' || clean === '-' || clean === '–' || clean === '—') {
    const between = isNumber(tokens[at - 1]) && !tokens[at - 1]!.endsParagraph && isNumber(tokens[at + 1]);
    if (between && (clean !== '-' || isCalculation(at, tokens))) return { spoken: [signs[clean] ?? ''] };
    if (isSpan(at, tokens)) return { spoken: [language.to!] };
    return { spoken: [/[-–—]/.test(clean) ? '–' : ''] };
  }
  if (clean === '#' && isHeadingMark(at, tokens)) return { spoken: [''] };
  const sign = signs[clean];
  if (sign === undefined) return /^(.)\1+$/u.test(clean) ? { spoken: [''] } : null;
  if (language.base === 'en' && isLimit(at, tokens)) return { spoken: [`is ${sign}`] };
  return language.base === 'en' && clean === '/' ? { spoken: [''] } : { spoken: [sign] };
}

/** "# Your order", which begins a paragraph, but "# 5" and "# of guests". */
function isHeadingMark(at: number, tokens: readonly Token[]): boolean {
  const begins = at === 0 || tokens[at - 1]!.endsParagraph;
  return begins && /^(?!of$)\p{L}/iu.test(tokens[at + 1]?.core ?? '');
}

/** "x ≥ 5" and "5 ≤ 7", but "Aged ≥ 18". */
function isLimit(at: number, tokens: readonly Token[]): boolean {
  return /^[≤≥]$/.test(tokens[at]!.clean) && /^(?:[\d.,]+|\p{L})$/u.test(tokens[at - 1]?.clean ?? '');
}

function isNumber(token: Token | undefined): boolean {
  return token !== undefined && /^[\d.,]+$/.test(token.core);
}

function sayHashtag(tag: string, language: SpokenLanguage): string {
  if (/^\d+$/.test(tag))
    return `number ${tag.length <= 3 ? saySmallNumberOrQuantity(tag, language) : sayNumberInName(tag, language)}`;
  const words = tag.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+|\d+|\p{L}/gu) ?? [];
  return `hashtag ${words.map((word) => (/^\d/.test(word) ? sayNumberInName(word, language) : word)).join(' ')}`;
}

function saySmallNumberOrQuantity(digits: string, language: SpokenLanguage): string {
  const number = parseNumber(digits, language);
  return number === null ? digits : sayNumber(number, language);
}

const PARTS = new RegExp(
  `\\d[\\d.,]*\\d(?![${VULGAR_FRACTIONS}])|\\d*[\\d${VULGAR_FRACTIONS}]|[\\p{L}\\p{M}'’.-]+|[^\\s]`,
  'gu',
);
const STARTS_WITH_NUMBER = new RegExp(`^[\\d${VULGAR_FRACTIONS}]`);

/** Words, numbers and signs in one: each by its name, or null if no sign has one. */
function readMixed(core: string, signs: Record<string, string>, language: SpokenLanguage): Reading | null {
  if (!SIGN.test(core)) return null;
  const parts = core.match(PARTS) ?? [];
  const said = parts.map((part, index) => {
    if (STARTS_WITH_NUMBER.test(part)) {
      const number = parseNumber(part, language);
      return number === null ? part : sayNumber(number, language);
    }
    if (/^[\p{L}\p{M}'’.-]/u.test(part)) return sayBetween(part, parts[index - 1], parts[index + 1], signs);
    if (part === '/' && !(/\d/.test(parts[index - 1] ?? '') && /\d/.test(parts[index + 1] ?? ''))) return '';
    return parts[index - 1] === part ? '' : (signs[part] ?? '');
  });
  return { spoken: [said.filter((part) => part !== '').join(' ')] };
}

/** Between numbers x is "by" and - "minus". */
function sayBetween(
  part: string,
  before: string | undefined,
  after: string | undefined,
  signs: Record<string, string>,
) {
  const isBetween = /\d$/.test(before ?? '') && /^\d/.test(after ?? '');
  if (isBetween && /^[xX]$/.test(part)) return signs.x ?? part;
  if (isBetween && part === '-') return signs['-'] ?? '';
  return /^[-.'’]+$/.test(part) ? '' : part;
}

const SIGN = /[&@#%+=/*×÷^~≈≤≥≠±→•°©®™§€£$₹<>|\\_]|\dx\d/u;

const SPECIAL = new Map([
  ['24/7', 'twenty-four seven'],
  ['24x7', 'twenty-four by seven'],
  ['9/11', 'nine eleven'],
  ['24/7/365', 'twenty-four seven three sixty-five'],
  ['wwi', 'World War One'],
  ['wwii', 'World War Two'],
  ['r&d', 'R. and D.'],
  ['at&t', 'A.T. and T.'],
  ['q&a', 'Q. and A.'],
  ['c++', 'C. plus plus'],
  ['c#', 'C. sharp'],
]);

const SIGNS: Record<string, Record<string, string>> = Object.assign(Object.create(null), {
  en: Object.assign(Object.create(null), {
    ...{ '&': 'and', '@': 'at', '#': 'number', '%': 'percent', '+': 'plus', '=': 'equals', '/': 'slash', '*': 'times' },
    ...{ '×': 'times', x: 'by', '÷': 'divided by', '^': 'to the power of', '~': 'about', '≈': 'approximately' },
    ...{
      '≤': 'at most',
      '≥': 'at least',
      '≠': 'is not',
      '±': 'plus or minus',
      '→': 'to',
      '°': 'degrees',
      '§': 'section',
    },
    ...{ '©': 'copyright', '<': 'less than', '>': 'greater than', '-': 'minus', '–': 'to', '—': 'to', $: 'dollars' },
    ...{ '€': 'euros', '£': 'pounds', '₹': 'rupees' },
  }),
  hi: Object.assign(Object.create(null), {
    ...{ '&': 'और', '@': 'ऐट', '%': 'प्रतिशत', '+': 'प्लस', '=': 'बराबर', '×': 'गुणा', '*': 'गुणा', '÷': 'भागा' },
    ...{ '-': 'माइनस', '₹': 'रुपये', $: 'डॉलर', x: 'बाय' },
  }),
});
