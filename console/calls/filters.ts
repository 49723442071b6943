import { timesOf } from '../app/day-range.ts';
import type { UrlSearch } from '../app/url-search.ts';
import type { Call } from '../call/call-data.ts';

/** Filters of the list, from its address. */
export interface CallFilters {
  q?: string;
  state?: Call['state'];
  direction?: Call['direction'];
  from?: string;
  to?: string;
}

export const STATES: readonly Call['state'][] = [
  'pending',
  'initiated',
  'bridged',
  'completed',
  'failed',
  'rejected',
  'unknown',
];
export const DIRECTIONS: readonly Call['direction'][] = ['outbound', 'inbound'];
/** Relative periods, so that a saved view stays current. */
export const PERIOD_DAYS: Record<string, number> = { today: 1, '7d': 7, '30d': 30 };

export const FILTER_NAMES = ['q', 'state', 'direction', 'period', 'from', 'to'] as const;

export function hasFilters(search: UrlSearch): boolean {
  return FILTER_NAMES.some((name) => search[name] !== undefined && search[name] !== '');
}

/** Ignores invalid values, because an address can contain anything. */
export function filtersOf(search: UrlSearch, now: Date = new Date()): CallFilters {
  const filters: CallFilters = {};
  const text = search.q?.trim();
  if (text) filters.q = text;
  const state = STATES.find((name) => name === search.state);
  if (state) filters.state = state;
  const direction = DIRECTIONS.find((name) => name === search.direction);
  if (direction) filters.direction = direction;
  const days = Object.hasOwn(PERIOD_DAYS, search.period ?? '') ? PERIOD_DAYS[search.period!] : undefined;
  const times = days === undefined ? timesOf(search) : { from: midnight(now, 1 - days).toISOString() };
  return { ...filters, ...times };
}

const CALL_ID = /^call_[\w-]+$/;
/** As the server accepts numbers: 4 to 15 digits. */
const NUMBER = /^\+?[\s().-]*(?:\d[\s().-]*){4,15}$/;
const MOST_NUMBER_CHARACTERS = 32;
/** As the server accepts references. */
const REFERENCE = /^[A-Za-z0-9._:-]{1,128}$/;
const METADATA_LENGTH = { least: 2, most: 200 };

/** The id of the one call that the search text names. */
export function callIdIn({ q }: CallFilters): string | null {
  return q !== undefined && CALL_ID.test(q) ? q : null;
}

/**
 * The filters as the server takes them. The search text can be a number, a reference or a part of the metadata: one
 * reading for each, the most specific first.
 */
export function readingsOf({ q, ...filters }: CallFilters): [CallQuery, ...CallQuery[]] {
  if (q === undefined) return [filters];
  // The server counts an emoji as one character.
  const characters = [...q].slice(0, METADATA_LENGTH.most);
  const metadata = characters.join('') + ' '.repeat(Math.max(0, METADATA_LENGTH.least - characters.length));
  const isNumber = q.length <= MOST_NUMBER_CHARACTERS && NUMBER.test(q);
  const specific = [...(isNumber ? [{ number: q }] : []), ...(REFERENCE.test(q) ? [{ reference_id: q }] : [])];
  const [first, ...others] = [...specific, { metadata }].map((text) => ({ ...filters, ...text }));
  return [first!, ...others];
}

export type CallQuery = Omit<CallFilters, 'q'> & { number?: string; reference_id?: string; metadata?: string };

function midnight(now: Date, days: number): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
}
