/** Formats numbers, money and times in the viewer's locale and time zone. */

const SMALL_USD = 0.01;
const USD = { style: 'currency', currency: 'USD' } as const;
// Creating a formatter takes longer than formatting a page of numbers.
const MONEY = new Intl.NumberFormat(undefined, { ...USD, maximumFractionDigits: 4, minimumFractionDigits: 2 });
const SMALL_MONEY = new Intl.NumberFormat(undefined, { ...USD, maximumSignificantDigits: 4 });
const COUNT = new Intl.NumberFormat();
const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** `usd` in dollars. Amounts below a cent keep four significant digits. */
export function money(usd: number | string): string {
  const amount = Number(usd);
  const isSmall = amount !== 0 && Math.abs(amount) < SMALL_USD;
  return (isSmall ? SMALL_MONEY : MONEY).format(amount);
}

/** `m:ss` or `h:mm:ss`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, '0'));
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${parts.join(':')}` : `${Number(parts[0])}:${parts[1]}`;
}

const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

export function dateTime(iso: string): string {
  return DATE_TIME.format(new Date(iso));
}

export function timeOfDay(iso: string): string {
  return TIME.format(new Date(iso));
}

export function day(iso: string): string {
  return DAY.format(new Date(iso));
}

export function count(value: number): string {
  return COUNT.format(value);
}

/** `share` from 0 to 1. */
export function percent(share: number): string {
  return PERCENT.format(share);
}

const BYTE_UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

/** In the largest unit (powers of 1000) with at least one whole. */
export function bytes(value: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  const unit = { style: 'unit', unit: BYTE_UNITS[power]!, maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat(undefined, unit).format(value / 1000 ** power);
}
