import { validationFailed } from '../validation.ts';

const ISO_8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/**
 * A time filter: an ISO 8601 date (midnight UTC) or date and time with its zone. A plus sign that arrived as a
 * space, as it does in a query that was not encoded, is put back. Null for anything else.
 */
export function parseTime(text: string): Date | null {
  const restored = text.replace(/ (\d{2}:\d{2})$/, '+$1');
  const time = ISO_8601.test(restored) ? new Date(restored) : null;
  return time === null || Number.isNaN(time.getTime()) || !isDay(restored.slice(0, 10)) ? null : time;
}

/** The time filter of a query parameter. @throws TandemError VALIDATION_FAILED */
export function readTime(path: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = parseTime(text);
  if (time === null)
    throw validationFailed([{ path, message: 'must be an ISO 8601 date, or date and time with zone' }]);
  return time;
}

/** Dates roll over: 30 February reads as 2 March. The database knows no year 0. */
function isDay(date: string): boolean {
  return !date.startsWith('0000') && new Date(date).toISOString().startsWith(date);
}
