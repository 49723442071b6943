import type { UrlSearch } from './url-search.ts';

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Converts the days in an address (`?from=2026-01-31&to=2026-02-01`) to times in the viewer's zone. `to` is included.
 */
export function timesOf({ from, to }: UrlSearch): { from?: string; to?: string } {
  const [start, end] = [startOf(from, 0), startOf(to, 1)];
  return { ...(start && { from: start }), ...(end && { to: end }) };
}

/** Undefined if it is not a day that the server knows, because an address can contain anything. */
function startOf(text: string | undefined, laterDays: number): string | undefined {
  if (text === undefined || !DAY.test(text)) return undefined;
  const [year, month, date] = text.split('-').map(Number);
  const time = new Date(year!, month! - 1, date! + laterDays).toISOString();
  // Years after 9999 have a sign.
  return time.startsWith('+') ? undefined : time;
}
