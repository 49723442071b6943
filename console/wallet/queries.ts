import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';

const PAGE_SIZE = 100;
const DAY_MS = 86_400_000;

export type LedgerEntry = Awaited<ReturnType<typeof pageOfLedger>>['entries'][number];
export type Payment = Awaited<ReturnType<typeof pageOfPayments>>['transactions'][number];

export const walletQuery = queryOptions({
  queryKey: ['wallet'],
  queryFn: () => dataOf(api.GET('/billing/wallet')),
});

export type UsageGrouping = 'product' | 'api_key' | 'day';
export type UsageGroup = Awaited<ReturnType<typeof summaryOf>>['groups'][number];

function summaryOf(from: string, groupBy: UsageGrouping) {
  return dataOf(api.GET('/billing/usage-summary', { params: { query: { from, group_by: groupBy } } }));
}

/** Usage by whole UTC days, as the server counts: the last `days`, including today. */
export const usageQuery = (days: number, groupBy: UsageGrouping) => {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const from = new Date(today - (days - 1) * DAY_MS).toISOString();
  return queryOptions({ queryKey: ['usage', from, groupBy], queryFn: () => summaryOf(from, groupBy) });
};

export const pricesQuery = queryOptions({
  queryKey: ['prices'],
  queryFn: () => dataOf(api.GET('/billing/prices')),
});

function pageOfLedger(filters: object, page: number) {
  return dataOf(api.GET('/billing/usage-logs', { params: { query: { ...filters, page, limit: PAGE_SIZE } } }));
}

function pageOfPayments(filters: object, page: number) {
  return dataOf(api.GET('/billing/transactions', { params: { query: { ...filters, page, limit: PAGE_SIZE } } }));
}

export const ledgerQuery = (filters: Record<string, string>) =>
  infiniteQueryOptions({
    queryKey: ['ledger', filters],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => pageOfLedger(filters, pageParam),
    getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
    // New entries move old ones to the next page, so duplicates occur.
    select: ({ pages }) => [...new Map(pages.flatMap(({ entries }) => entries).map((row) => [row.id, row])).values()],
  });

export const paymentsQuery = (filters: Record<string, string>) =>
  infiniteQueryOptions({
    queryKey: ['payments', filters],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => pageOfPayments(filters, pageParam),
    getNextPageParam: ({ pagination: { current_page: page, total_pages: pages } }) =>
      page < pages ? page + 1 : undefined,
    select: ({ pages }) => [
      ...new Map(pages.flatMap(({ transactions }) => transactions).map((row) => [row.hash_id, row])).values(),
    ],
  });
