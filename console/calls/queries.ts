import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { ApiError } from '../app/api-error.ts';
import { queryClient } from '../app/query-client.ts';
import { viewerTimeZone } from '../parts/time-zone.ts';
import { type CallFilters, type CallQuery, callIdIn, readingsOf } from './filters.ts';

const PAGE_SIZE = 100;
const FIRST_CURSOR = 'start';
const DAY_MS = 86_400_000;
/** The server counts at most a year. */
const MOST_DAYS = 366;
const DEFAULT_DAYS = 30;
/** Shorter periods are drawn by the hour. */
const HOURLY_DAYS = 2;

export type CallStatistics = Awaited<ReturnType<typeof fetchStatistics>>;

/** The calls that match, newest first. A cursor repeats and skips nothing while calls are added. */
export function callsQuery(filters: CallFilters) {
  return infiniteQueryOptions({
    queryKey: ['calls', filters],
    initialPageParam: FIRST_CURSOR,
    queryFn: async ({ pageParam: cursor, signal }) => {
      const callId = callIdIn(filters);
      if (callId !== null) return { calls: await callsWithId(callId, signal), next_cursor: null };
      const query = { ...(await queryClient.fetchQuery(readingQuery(filters))), cursor, limit: PAGE_SIZE };
      return await dataOf(api.GET('/dialer/click2call', { params: { query }, signal }));
    },
    getNextPageParam: ({ next_cursor: next }) => next ?? undefined,
  });
}

/** The reading of the filters: the first with which a call matches, else the last. */
export function readingQuery(filters: CallFilters) {
  return queryOptions({
    queryKey: ['calls', filters, 'reading'],
    queryFn: async ({ signal }): Promise<CallQuery> => {
      const readings = readingsOf(filters);
      for (const reading of readings.slice(0, -1)) {
        const query = { ...reading, cursor: FIRST_CURSOR, limit: 1 };
        const { calls } = await dataOf(api.GET('/dialer/click2call', { params: { query }, signal }));
        if (calls.length > 0) return reading;
      }
      return readings.at(-1)!;
    },
  });
}

async function callsWithId(id: string, signal: AbortSignal) {
  try {
    const { call } = await dataOf(api.GET('/dialer/click2call/{id}', { params: { path: { id } }, signal }));
    return [call];
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

/** How many calls match. A list by cursor has no total. */
export function totalQuery(filters: CallFilters) {
  return queryOptions({
    queryKey: ['calls', filters, 'total'],
    enabled: callIdIn(filters) === null,
    queryFn: async ({ signal }) => {
      const query = { ...(await queryClient.fetchQuery(readingQuery(filters))), page: 1, limit: 1 };
      return (await dataOf(api.GET('/dialer/click2call', { params: { query }, signal }))).pagination?.total;
    },
  });
}

function fetchStatistics(query: { from: string; to: string; interval: 'day' | 'hour'; time_zone: string }) {
  return dataOf(api.GET('/dialer/statistics', { params: { query } }));
}

/** All calls of the period of the filters, or of the last 30 days, in the viewer's time zone. */
export function statisticsQuery({ from, to }: Pick<CallFilters, 'from' | 'to'>) {
  return queryOptions({
    queryKey: ['call-statistics', from, to],
    queryFn: () => {
      const end = to === undefined ? Date.now() : Date.parse(to);
      const earliest = end - MOST_DAYS * DAY_MS;
      const start = from === undefined ? end - DEFAULT_DAYS * DAY_MS : Math.max(earliest, Date.parse(from));
      return fetchStatistics({
        from: new Date(Math.min(start, end - 1)).toISOString(),
        to: new Date(end).toISOString(),
        interval: end - start <= HOURLY_DAYS * DAY_MS ? 'hour' : 'day',
        time_zone: viewerTimeZone(),
      });
    },
  });
}
