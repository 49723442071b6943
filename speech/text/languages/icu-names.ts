import type { Amount } from './language.ts';

/** Names from Unicode's CLDR, through `Intl`; null for unknown languages. */

export function currencyName(language: string, code: string, amount: Amount): string | null {
  const format = cached(
    `${language} ${code}`,
    () =>
      new Intl.NumberFormat(language, {
        style: 'currency',
        currency: code,
        currencyDisplay: 'name',
        minimumFractionDigits: 0,
      }),
  );
  return part(format, 'currency', amount);
}

export function unitName(language: string, unit: string, amount: Amount): string | null {
  // `Intl` throws for other units, such as watt.
  if (!unit.split('-per-').every((part) => UNITS.has(part))) return null;
  const format = cached(
    `${language} ${unit}`,
    () => new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }),
  );
  const name = part(format, 'unit', amount);
  return name !== null && /^(?:[\p{L}\p{M}\p{Zs}'’-]|\u200c|\u200d)+$/u.test(name) ? name : null;
}

const UNITS: ReadonlySet<string> = new Set(Intl.supportedValuesOf('unit'));

/** January first. */
export function monthNames(language: string): readonly string[] | null {
  if (!isKnown(language)) return null;
  const format = new Intl.DateTimeFormat(language, { month: 'long', timeZone: 'UTC', calendar: 'gregory' });
  return Array.from({ length: 12 }, (_, month) => format.format(Date.UTC(2026, month, 15)));
}

/**
 * CLDR's long form of a Gregorian date, with day and year in digits. Null for a day or year that does not exist, such
 * as 30 February, and for a year that belongs to the language's own calendar, such as 1404 in Persian and 2569 in Thai.
 */
export function longDate(language: string, { day, month, year }: { day: number; month: number; year: number }) {
  if (!isKnown(language)) return null;
  const { calendar } = new Intl.DateTimeFormat(language).resolvedOptions();
  if (calendar !== 'gregory' && (year < FIRST_GREGORIAN || year > LAST_GREGORIAN)) return null;
  // Unlike `Date.UTC`, it does not move the years 0 to 99 to the 20th century.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (year === 0 || date.getUTCDate() !== day) return null;
  const options = { dateStyle: 'long', timeZone: 'UTC', calendar: 'gregory', numberingSystem: 'latn' } as const;
  return new Intl.DateTimeFormat(language, options).format(date);
}

const FIRST_GREGORIAN = 1700;
const LAST_GREGORIAN = 2300;

/** For unknown languages `Intl` falls back to the machine's language. */
export function isKnown(language: string): boolean {
  return /^[a-z]{2,3}$/.test(language) && Intl.NumberFormat.supportedLocalesOf(language).length > 0;
}

/** At most two hundred languages times sixty names. */
const formats = new Map<string, Intl.NumberFormat | null>();

function cached(key: string, make: () => Intl.NumberFormat): Intl.NumberFormat | null {
  const known = formats.get(key);
  if (known !== undefined) return known;
  const language = key.slice(0, key.indexOf(' '));
  if (!isKnown(language)) return null;
  const format = make();
  formats.set(key, format);
  return format;
}

function part(format: Intl.NumberFormat | null, type: 'currency' | 'unit', { whole, decimals }: Amount): string | null {
  if (format === null) return null;
  const number = Number(decimals === null ? whole : `${whole}.${decimals}`);
  // Some languages write the unit in two parts, before and after the number.
  const parts = format.formatToParts(number).filter((written) => written.type === type);
  return parts.length === 1 ? parts[0]!.value : null;
}
