import { toOrdinal, toWords } from 'to-words/en-US';
import { ENGLISH_ABBREVIATIONS, ENGLISH_NUMBER_CUES } from './english-words.ts';
import { currencyName, unitName } from './icu-names.ts';
import type { Amount, CurrencyNames, Grouping, NumberWords, Phrases, SpokenLanguage } from './language.ts';

/** English of the United States, Britain (and similar regions) and India, by the tag's region. */
export function english(tag: string): SpokenLanguage {
  const isAmerican = tag === 'en' || /-(us|ca|ph)\b/.test(tag);
  const numbers = englishNumbers({ isAmerican, isIndian: /-(in|pk|bd|np|lk)\b/.test(tag) });
  return {
    tag,
    base: 'en',
    decimalMark: '.',
    dateOrder: /-(us|ph)\b/.test(tag) || tag === 'en' ? 'month-day' : 'day-month',
    numbers,
    months: ENGLISH_MONTHS,
    phrases: englishPhrases(numbers, { isAmerican }),
    to: 'to',
    plus: 'plus',
    percent: 'percent',
    currency: englishCurrency,
    unit: englishUnit,
    abbreviations: ENGLISH_ABBREVIATIONS,
    numberCues: ENGLISH_NUMBER_CUES,
  };
}

export const ENGLISH_MONTHS: readonly string[] = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
];

const SMALL: readonly string[] = Array.from({ length: 100 }, (_, n) => toWords(n).toLowerCase().replace(' ', '-'));

const WESTERN_SCALES: readonly (readonly [size: number, name: string])[] = [
  [1e12, 'trillion'],
  [1e9, 'billion'],
  [1e6, 'million'],
  [1000, 'thousand'],
];
const INDIAN_SCALES: readonly (readonly [size: number, name: string])[] = [
  [1e7, 'crore'],
  [1e5, 'lakh'],
  [1000, 'thousand'],
];

function englishNumbers({ isAmerican, isIndian }: { isAmerican: boolean; isIndian: boolean }): NumberWords {
  /** American English says "one hundred one", others "one hundred and one". */
  const and = isAmerican ? '' : 'and ';

  function cardinal(whole: number, grouping: Grouping): string {
    const scales = grouping === 'indian' || (isIndian && grouping === null) ? INDIAN_SCALES : WESTERN_SCALES;
    const words: string[] = [];
    let rest = whole;
    for (const [size, name] of scales) {
      if (rest < size) continue;
      words.push(cardinal(Math.floor(rest / size), grouping), name);
      rest %= size;
    }
    if (rest >= 100) {
      words.push(SMALL[Math.floor(rest / 100)]!, 'hundred');
      rest %= 100;
    }
    if (rest > 0 || whole === 0) words.push(words.length > 0 ? `${and}${SMALL[rest]}` : SMALL[rest]!);
    return words.join(' ');
  }

  function ordinal(number: number): string {
    const last = number % 100;
    const before = number - last;
    if (last === 0) return `${cardinal(number, 'western')}th`;
    const small = toOrdinal(last).toLowerCase().replace(' ', '-');
    return before === 0 ? small : `${cardinal(before, 'western')} ${and}${small}`;
  }

  function year(number: number): string {
    const century = Math.floor(number / 100);
    const rest = number % 100;
    if (number < 1000 || number > 9999 || number % 1000 < 10) return cardinal(number, 'western');
    if (rest === 0) return `${SMALL[century]} hundred`;
    return `${SMALL[century]} ${rest < 10 ? `oh ${SMALL[rest]}` : SMALL[rest]}`;
  }

  return { digits: SMALL.slice(0, 10), cardinal, ordinal, year, point: 'point', minus: 'minus' };
}

function englishPhrases(numbers: NumberWords, { isAmerican }: { isAmerican: boolean }): Phrases {
  function minutes(minute: number): string {
    return minute < 10 ? `oh ${SMALL[minute]}` : SMALL[minute]!;
  }

  return {
    date({ day, month, year }) {
      const name = ENGLISH_MONTHS[month - 1]!;
      const dayName = numbers.ordinal(day)!;
      const date = isAmerican ? `${name} ${dayName}` : `the ${dayName} of ${name}`;
      return year === null ? date : `${date}, ${numbers.year(year)}`;
    },
    time({ hour, minute, second }) {
      const hours = hour === 0 ? 'zero' : SMALL[hour]!;
      const whole = hour > 12 || hour === 0 ? `${hours} hundred` : `${hours} o'clock`;
      const time = minute === 0 && second === null ? whole : `${hours} ${minutes(minute)}`;
      return second === null ? time : `${time} and ${SMALL[second]} second${second === 1 ? '' : 's'}`;
    },
    fraction(numerator, denominator) {
      const name = denominatorName(denominator, numbers);
      if (name === null) return null;
      if (numerator === 1) return denominator === 2 ? 'half' : `one ${name}`;
      return `${numbers.cardinal(numerator, 'western')} ${denominator === 2 ? 'halves' : `${name}s`}`;
    },
    and: 'and',
  };
}

function denominatorName(denominator: number, numbers: NumberWords): string | null {
  if (denominator === 2) return 'half';
  if (denominator === 4) return 'quarter';
  return denominator > 2 && denominator <= 100 ? numbers.ordinal(denominator) : null;
}

const CURRENCIES: Record<string, readonly [one: string, many: string, cent: string | null, cents: string | null]> = {
  USD: ['dollar', 'dollars', 'cent', 'cents'],
  EUR: ['euro', 'euros', 'cent', 'cents'],
  GBP: ['pound', 'pounds', 'penny', 'pence'],
  INR: ['rupee', 'rupees', 'paisa', 'paise'],
  JPY: ['yen', 'yen', null, null],
  CNY: ['yuan', 'yuan', null, null],
  BTC: ['bitcoin', 'bitcoins', null, null],
};
/** Other currencies with cents. */
const CENTS = new Set(['AUD', 'CAD', 'HKD', 'NZD', 'SGD', 'ZAR', 'CHF', 'AED']);

function englishCurrency(code: string, amount: Amount): CurrencyNames | null {
  const isOne = amount.whole === '1' && amount.decimals === null;
  const own = CURRENCIES[code];
  if (own === undefined) {
    const name = currencyName('en', code, amount);
    const subunit = (cents: number) => (CENTS.has(code) ? (cents === 1 ? 'cent' : 'cents') : null);
    return name === null ? null : { name, subunit };
  }
  return { name: isOne ? own[0] : own[1], subunit: (cents) => (cents === 1 ? own[2] : own[3]) };
}

/** Missing in CLDR, or spoken differently. */
const OWN_UNITS: Record<string, readonly [one: string, many: string]> = {
  celsius: ['degree Celsius', 'degrees Celsius'],
  fahrenheit: ['degree Fahrenheit', 'degrees Fahrenheit'],
  milligram: ['milligram', 'milligrams'],
  microgram: ['microgram', 'micrograms'],
  hertz: ['hertz', 'hertz'],
  kilohertz: ['kilohertz', 'kilohertz'],
  megahertz: ['megahertz', 'megahertz'],
  gigahertz: ['gigahertz', 'gigahertz'],
  watt: ['watt', 'watts'],
  kilowatt: ['kilowatt', 'kilowatts'],
  megawatt: ['megawatt', 'megawatts'],
  'kilowatt-hour': ['kilowatt hour', 'kilowatt hours'],
  volt: ['volt', 'volts'],
  millivolt: ['millivolt', 'millivolts'],
  ampere: ['amp', 'amps'],
  milliampere: ['milliamp', 'milliamps'],
  decibel: ['decibel', 'decibels'],
  calorie: ['calorie', 'calories'],
  kilocalorie: ['kilocalorie', 'kilocalories'],
  pascal: ['pascal', 'pascals'],
  kilopascal: ['kilopascal', 'kilopascals'],
  'square-meter': ['square meter', 'square meters'],
  cent: ['cent', 'cents'],
  'square-centimeter': ['square centimeter', 'square centimeters'],
  'square-millimeter': ['square millimeter', 'square millimeters'],
  'cubic-meter': ['cubic meter', 'cubic meters'],
  'cubic-centimeter': ['cubic centimeter', 'cubic centimeters'],
  'square-kilometer': ['square kilometer', 'square kilometers'],
  'square-foot': ['square foot', 'square feet'],
  'meter-per-second': ['meter per second', 'meters per second'],
  'megabit-per-second': ['megabit per second', 'megabits per second'],
  'kilobit-per-second': ['kilobit per second', 'kilobits per second'],
  'gigabit-per-second': ['gigabit per second', 'gigabits per second'],
  'revolution-per-minute': ['revolution per minute', 'revolutions per minute'],
  'part-per-million': ['part per million', 'parts per million'],
  quintal: ['quintal', 'quintals'],
  stone: ['stone', 'stone'],
  teaspoon: ['teaspoon', 'teaspoons'],
  tablespoon: ['tablespoon', 'tablespoons'],
};

function englishUnit(unit: string, amount: Amount): string | null {
  const own = OWN_UNITS[unit];
  if (own !== undefined) return amount.whole === '1' && amount.decimals === null ? own[0] : own[1];
  return unitName('en', unit, amount);
}
