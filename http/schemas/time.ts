import { validationFailed } from '../validation.ts';

const ISO_8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/**
 * Parses a time filter: an ISO 8601 date (midnight UTC), or a date and time with a time zone. Accepts a space instead
 * of the zone's plus sign, as in an unencoded query. Null if invalid.
 */
export function parseTime(text: string): Date | null {
  const restored = text.replace(/ (\d{2}:\d{2})$/, '+$1');
  const time = ISO_8601.test(restored) ? new Date(restored) : null;
  return time !== null && isWithinYears(time) && isDay(restored.slice(0, 10)) ? time : null;
}

/** The years that have four digits in UTC; PostgreSQL rejects others as `Date` writes them. */
const EARLIEST = new Date('0001-01-01T00:00:00Z');
const LATEST = new Date('9999-12-31T23:59:59.999Z');

/** False for an invalid date, too. */
function isWithinYears(time: Date): boolean {
  return time >= EARLIEST && time <= LATEST;
}

/** Start of a period of a length, as far back as a time filter can be. */
export function periodStart(end: Date, lengthMs: number): Date {
  return new Date(Math.max(EARLIEST.getTime(), end.getTime() - lengthMs));
}

export function readTime(path: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = parseTime(text);
  if (time === null)
    throw validationFailed([{ path, message: 'must be an ISO 8601 date, or a date and time with time zone' }]);
  return time;
}

/** Rejects dates that `Date` rolls over: 30 February becomes 2 March. */
function isDay(date: string): boolean {
  return new Date(date).toISOString().startsWith(date);
}
