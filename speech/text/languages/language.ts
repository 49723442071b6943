/** A language's rules for reading numbers and what contains them. Found by `find-language.ts`. */
export interface SpokenLanguage {
  /** BCP 47 in lower case, such as `en-in`. */
  readonly tag: string;
  /** ISO 639. */
  readonly base: string;
  /** Decimal separator in writing. */
  readonly decimalMark: '.' | ',';
  /** Order of numeric dates. */
  readonly dateOrder: 'day-month' | 'month-day';
  /** Null: numbers stay digits, which every engine reads in its own language. */
  readonly numbers: NumberWords | null;
  /** January first; null if dates are not read. */
  readonly months: readonly string[] | null;
  /** Null: dates, times and fractions stay unchanged. */
  readonly phrases: Phrases | null;
  /** Between the two numbers of a range. */
  readonly to: string | null;
  readonly plus: string | null;
  readonly percent: string | null;
  /** By ISO 4217, such as `rupees` and `paise`. */
  currency(code: string, amount: Amount): CurrencyNames | null;
  /** Name of a CLDR unit, such as `kilometer`, in the plural form for the amount; null if it has no name. */
  unit(unit: string, amount: Amount): string | null;
  /** From lower case, with its full stop if it has one, to the spoken form. */
  readonly abbreviations: ReadonlyMap<string, string>;
  /** Lower-case words after which a number is an identifier, read digit by digit. */
  readonly numberCues: ReadonlySet<string>;
}

/** Determines the plural form. */
export interface Amount {
  whole: string;
  decimals: string | null;
}

export interface NumberWords {
  /** 0 to 9. */
  digits: readonly string[];
  /** At most 15 digits. `indian` counts in lakh and crore. */
  cardinal(whole: number, grouping: Grouping): string;
  /** 1 to 9 999, null if it has none. */
  ordinal(number: number): string | null;
  year(year: number): string;
  point: string;
  minus: string;
}

export type Grouping = 'indian' | 'western' | null;

export interface CurrencyNames {
  name: string;
  /** The currency's hundredth in the plural form for the cents; null if there is none. */
  subunit(cents: number): string | null;
}

export interface Phrases {
  /** Month from 1. */
  date(date: { day: number; month: number; year: number | null }): string;
  /** A clock time; the hour as written. */
  time(time: { hour: number; minute: number; second: number | null }): string;
  /** Null if there is no usual form. */
  fraction(numerator: number, denominator: number): string | null;
  /** Between a whole number or amount and an addition: `two and a half`. */
  and: string;
}
