import { parseDateAs, parseNumericDate, sayDate, sayPartialDate } from './dates.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { letters } from './letters.ts';
import { parseNumber, sayDigits, sayNumber } from './numbers.ts';
import { readWords } from './read-words.ts';
import { readSymbols } from './symbols.ts';
import { sayTelephone } from './telephone.ts';
import { sayTimeAs } from './times.ts';
import { type Token, toToken } from './token.ts';

/** Values of `interpret-as` in SSML `say-as`. */
export const INTERPRETATIONS = [
  ...['cardinal', 'number', 'ordinal', 'digits', 'telephone', 'characters', 'spell-out', 'verbatim'],
  ...['date', 'time', 'currency', 'fraction', 'unit', 'expletive'],
] as const;

/** Values of `format` for dates. */
export const DATE_FORMATS = ['mdy', 'dmy', 'ymd', 'md', 'dm', 'ym', 'my', 'd', 'm', 'y'] as const;

export interface Interpretation {
  as: string;
  format: string | null;
}

/** Spoken form of each written word. Text that does not match its interpretation is read normally. */
export function sayAs(written: readonly string[], { as, format }: Interpretation, language: SpokenLanguage): string[] {
  const tokens = written.map((word) => toToken(word));
  const together = sayTogether(tokens, { as, format }, language);
  if (together !== null) return written.map((_, index) => (index === 0 ? together : ''));
  const usual = readWords(tokens, language);
  return tokens.map((token, index) => sayAlone(token, as, language) ?? usual[index]!.spoken);
}

/** Dates and times of several words are one. */
function sayTogether(
  tokens: readonly Token[],
  { as, format }: Interpretation,
  language: SpokenLanguage,
): string | null {
  const text = tokens.map(({ clean }) => clean).join(' ');
  if (as === 'time') return sayTimeAs(text, language);
  if (as !== 'date') return null;
  if (format === null) {
    const date = parseNumericDate(text, language);
    return date && sayDate(date, language);
  }
  const date = parseDateAs(format, text);
  return date === null ? sayPartialDate(format, text, language) : sayDate(date, language);
}

function sayAlone({ clean, core }: Token, as: string, language: SpokenLanguage): string | null {
  switch (as) {
    case 'digits':
      return /\d/.test(clean) ? sayDigits(clean, language) : null;
    case 'telephone':
      return /\d/.test(clean) ? sayTelephoneWithLetters(clean, language) : null;
    case 'characters':
    case 'spell-out':
    case 'verbatim':
      return sayCharacters(clean, language);
    case 'cardinal':
    case 'number': {
      const number = parseNumber(core, language);
      return number && sayNumber(number, language);
    }
    case 'ordinal': {
      const digits = /^\d{1,6}/.exec(core.replaceAll(',', ''))?.[0];
      return digits === undefined ? null : (language.numbers?.ordinal(Number(digits)) ?? null);
    }
    case 'fraction':
      return sayFraction(core, language);
    case 'expletive':
      return '';
    default:
      return null;
  }
}

function sayCharacters(text: string, language: SpokenLanguage): string {
  const said = (text.match(/\p{L}\p{M}*|[^\s]/gu) ?? []).map((character) => {
    if (/^\d$/.test(character)) return sayDigits(character, language);
    if (/^[A-Za-z]$/.test(character)) return letters(character);
    if (/^\p{L}/u.test(character)) return character;
    const token = toToken(character);
    return readSymbols(0, { tokens: [token], language })?.spoken[0] ?? '';
  });
  return said
    .filter((character) => character !== '')
    .join(' ')
    .replace(/(?<=[A-Z]\.) (?=[A-Z]\.)/g, '');
}

/** 1-800-FLOWERS: the letters are words. */
function sayTelephoneWithLetters(text: string, language: SpokenLanguage): string {
  const parts = text.match(/\p{L}[\p{L}\p{M}]*|[^\p{L}]+/gu) ?? [];
  return parts
    .map((part) => (/^\p{L}/u.test(part) ? part : sayTelephone(part, language)))
    .filter((part) => part !== '')
    .join(', ');
}

/** 3/4 and 2+1/2. */
function sayFraction(text: string, language: SpokenLanguage): string | null {
  const { phrases, numbers } = language;
  const written = /^(?:(\d{1,6})\+)?(\d{1,6})\/(\d{1,6})$/.exec(text);
  if (written === null || phrases === null || numbers === null) return null;
  const [, whole, numerator, denominator] = written;
  const said = phrases.fraction(Number(numerator), Number(denominator));
  if (said === null) return null;
  if (whole === undefined) return said === 'half' ? 'one half' : said;
  return `${numbers.cardinal(Number(whole), null)} ${phrases.and} ${said === 'half' ? 'a half' : said}`;
}
