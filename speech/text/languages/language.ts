/** What a language gives to reading numbers and what is made of them. Found by `find-language.ts`. */
export interface SpokenLanguage {
  /** BCP 47 in lower case, such as `en-in`. */
  readonly tag: string;
  /** ISO 639. */
  readonly base: string;
  /** Between whole number and decimals as it is written. */
  readonly decimalMark: '.' | ',';
  /** Of dates in digits. */
  readonly dateOrder: 'day-month' | 'month-day';
  /** Null where numbers stay digits, which every engine reads in its own language. */
  readonly numbers: NumberWords | null;
  /** January first; null where no dates are read. */
  readonly months: readonly string[] | null;
  /** Null where dates, times and fractions are left as they are. */
  readonly phrases: Phrases | null;
  /** Between the two numbers of a range. */
  readonly to: string | null;
  readonly plus: string | null;
  readonly percent: string | null;
  /** By ISO 4217, such as `rupees` and `paise`. */
  currency(code: string, amount: Amount): CurrencyNames | null;
  /** By CLDR unit, such as `kilometer`, in the number of the amount; null where it has no name. */
  unit(unit: string, amount: Amount): string | null;
  /** Lower case, with its full stop if it has one, to what is said for it. */
  readonly abbreviations: ReadonlyMap<string, string>;
  /** Words after which a number is a name and is read digit by digit. Lower case. */
  readonly numberCues: ReadonlySet<string>;
}

/** What decides between one and many. */
export interface Amount {
  whole: string;
  decimals: string | null;
}

export interface NumberWords {
  /** 0 to 9. */
  digits: readonly string[];
  /** Of at most 15 digits. `indian` counts in lakh and crore. */
  cardinal(whole: number, grouping: Grouping): string;
  /** Of 1 to 9 999, null where it has none. */
  ordinal(number: number): string | null;
  year(year: number): string;
  point: string;
  minus: string;
}

export type Grouping = 'indian' | 'western' | null;

export interface CurrencyNames {
  name: string;
  /** A hundredth of it in the number of the cents; null where it has none. */
  subunit(cents: number): string | null;
}

export interface Phrases {
  /** Month from 1. */
  date(date: { day: number; month: number; year: number | null }): string;
  /** Of a clock; the hour as it is written. */
  time(time: { hour: number; minute: number; second: number | null }): string;
  /** Null where nobody says so. */
  fraction(numerator: number, denominator: number): string | null;
  /** Between a whole number or amount and what is added to it: `two and a half`. */
  and: string;
}
