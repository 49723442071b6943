import { ENGLISH_NUMBER_CUES } from './english-words.ts';
import { currencyName, monthNames, unitName } from './icu-names.ts';
import { indianCardinal } from './indian-numbers.ts';
import { INDIAN_ABBREVIATIONS, INDIAN_NUMBER_CUES, INDIAN_WORDS, type IndianWords } from './indian-words.ts';
import type { CurrencyNames, NumberWords, Phrases, SpokenLanguage } from './language.ts';

/** Hindi and eleven other languages of India; null for any other. */
export function indian(tag: string): SpokenLanguage | null {
  const base = tag.split('-')[0]!;
  if (!Object.hasOwn(INDIAN_WORDS, base)) return null;
  const words = INDIAN_WORDS[base];
  const cardinal = indianCardinal(base);
  if (words === undefined || cardinal === null) return null;
  const numbers: NumberWords = {
    digits: Array.from({ length: 10 }, (_, digit) => cardinal(digit)),
    cardinal,
    ordinal: (number) => ordinal(base, number, cardinal),
    year: (year) => indianYear(base, year, cardinal),
    point: words.point,
    minus: words.minus,
  };
  const months = monthNames(base);
  return {
    tag,
    base,
    decimalMark: '.',
    dateOrder: 'day-month',
    numbers,
    months,
    phrases: months && phrases({ base, words, numbers, months }),
    to: words.to,
    plus: words.plus,
    percent: words.percent,
    currency: (code, { whole, decimals }) => currency(code, words, whole === '1' && decimals === null, base),
    unit: (unit, amount) => (base === 'hi' ? HINDI_UNITS[unit] : undefined) ?? unitName(base, unit, amount),
    abbreviations: INDIAN_ABBREVIATIONS[base] ?? new Map(),
    numberCues: CUES,
  };
}

const CUES: ReadonlySet<string> = new Set([...ENGLISH_NUMBER_CUES, ...INDIAN_NUMBER_CUES]);

/** Hindi, Urdu, Punjabi, Gujarati and Marathi count 1100 to 1999 in hundreds: nineteen hundred ninety-nine. */
const COUNT_HUNDREDS: Record<string, string> = { hi: 'सौ', ur: 'سو', pa: 'ਸੌ', gu: 'સો', mr: 'शे' };

function indianYear(base: string, year: number, cardinal: (whole: number) => string): string {
  const hundred = COUNT_HUNDREDS[base];
  if (hundred === undefined || year < 1100 || year > 1999) return cardinal(year);
  const century = `${cardinal(Math.floor(year / 100))}${base === 'mr' ? '' : ' '}${hundred}`;
  return year % 100 === 0 ? century : `${century} ${cardinal(year % 100)}`;
}

const HINDI_ORDINALS = ['पहला', 'दूसरा', 'तीसरा', 'चौथा', 'पांचवां', 'छठा'];

function ordinal(base: string, number: number, cardinal: (whole: number) => string): string | null {
  if (base !== 'hi') return null;
  return HINDI_ORDINALS[number - 1] ?? `${cardinal(number)}वां`;
}

function phrases(language: {
  base: string;
  words: IndianWords;
  numbers: NumberWords;
  months: readonly string[];
}): Phrases {
  const { base, words, numbers, months } = language;
  const name = (number: number) => numbers.cardinal(number, 'indian');
  return {
    date({ day, month, year }) {
      const date = `${name(day)} ${months[month - 1]}`;
      return year === null ? date : `${date} ${numbers.year(year)}`;
    },
    time({ hour, minute, second }) {
      const pattern = minute === 0 && second === null ? words.onTheHour : words.hourAndMinutes;
      const time = pattern.replace('{h}', name(hour)).replace('{m}', name(minute));
      return second === null ? time : `${time} ${words.seconds.replace('{s}', name(second))}`;
    },
    fraction: (numerator, denominator) =>
      base === 'hi' ? (HINDI_FRACTIONS[`${numerator}/${denominator}`] ?? null) : null,
    and: base === 'hi' ? 'और' : '',
  };
}

const HINDI_FRACTIONS: Record<string, string> = {
  '1/2': 'आधा',
  '1/3': 'एक तिहाई',
  '2/3': 'दो तिहाई',
  '1/4': 'एक चौथाई',
  '3/4': 'तीन चौथाई',
};

function currency(code: string, words: IndianWords, isOne: boolean, base: string): CurrencyNames | null {
  const none = () => null;
  switch (code) {
    case 'INR':
      return { name: isOne ? (words.rupee ?? words.rupees) : words.rupees, subunit: () => words.paise };
    case 'USD':
      return { name: words.dollars, subunit: none };
    case 'EUR':
      return { name: words.euros, subunit: none };
    case 'GBP':
      return { name: words.pounds, subunit: none };
    default: {
      const name = currencyName(base, code, { whole: isOne ? '1' : '5', decimals: null });
      return name === null ? null : { name, subunit: none };
    }
  }
}

const HINDI_UNITS: Record<string, string> = {
  milligram: 'मिलीग्राम',
  hertz: 'हर्ट्ज़',
  megahertz: 'मेगाहर्ट्ज़',
  gigahertz: 'गीगाहर्ट्ज़',
  watt: 'वॉट',
  kilowatt: 'किलोवॉट',
  volt: 'वोल्ट',
  decibel: 'डेसिबल',
  'square-meter': 'वर्ग मीटर',
  'square-foot': 'वर्ग फ़ुट',
  hour: 'घंटे',
  quintal: 'क्विंटल',
};
