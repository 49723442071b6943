import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import type { AuditFilters } from './audit-actions.ts';

const PAGE_SIZE = 100;
const DELIVERIES_PER_PAGE = 20;

export type ApiKey = Awaited<ReturnType<typeof pageOfKeys>>['keys'][number];
export type Scope = ApiKey['scopes'][number];
export type Webhook = Awaited<ReturnType<typeof pageOfWebhooks>>['webhooks'][number];
export type WebhookEvent = Webhook['events'][number];
export type DeliveryStatus = 'pending' | 'delivered' | 'failed';
export type Delivery = Awaited<ReturnType<typeof pageOfDeliveries>>['deliveries'][number];
export type AuditEntry = Awaited<ReturnType<typeof pageOfAudit>>['entries'][number];

function pageOfKeys(page: number) {
  return dataOf(api.GET('/developer/api', { params: { query: { page, limit: PAGE_SIZE } } }));
}

function pageOfWebhooks(page: number) {
  return dataOf(api.GET('/webhooks', { params: { query: { page, limit: PAGE_SIZE } } }));
}

function pageOfDeliveries(id: string, query: { status?: DeliveryStatus; page: number }) {
  return dataOf(
    api.GET('/webhooks/{id}/deliveries', {
      params: { path: { id }, query: { ...query, limit: DELIVERIES_PER_PAGE } },
    }),
  );
}

function pageOfAudit(filters: AuditFilters, page: number) {
  return dataOf(api.GET('/audit', { params: { query: { ...filters, page, limit: PAGE_SIZE } } }));
}

/** All keys that the viewer may see. */
export const allKeysQuery = queryOptions({
  queryKey: ['api-keys'],
  queryFn: async (): Promise<ApiKey[]> => {
    const keys: ApiKey[] = [];
    for (let page = 1; ; page += 1) {
      const next = await pageOfKeys(page);
      keys.push(...next.keys);
      if (page >= next.pagination.pages) return keys;
    }
  },
});

export const webhooksQuery = queryOptions({
  queryKey: ['webhooks'],
  queryFn: async (): Promise<Webhook[]> => {
    const webhooks: Webhook[] = [];
    for (let page = 1; ; page += 1) {
      const next = await pageOfWebhooks(page);
      webhooks.push(...next.webhooks);
      if (page >= next.pagination.pages) return webhooks;
    }
  },
});

const SETTLING_MS = 2_000;

/** Polls while an attempt is due, because no stream reports attempts. */
export const deliveriesQuery = (id: string, status: DeliveryStatus | undefined) =>
  infiniteQueryOptions({
    queryKey: ['deliveries', id, status ?? ''],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => pageOfDeliveries(id, { ...(status && { status }), page: pageParam }),
    getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
    select: ({ pages }) => [
      ...new Map(pages.flatMap(({ deliveries }) => deliveries).map((row) => [row.id, row])).values(),
    ],
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ deliveries }) => deliveries.some(isUnderWay)) ? SETTLING_MS : false,
  });

function isUnderWay({ status, next_attempt_at: next }: Delivery): boolean {
  return status === 'pending' && (next === null || Date.parse(next) <= Date.now() + SETTLING_MS);
}

export const auditQuery = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: ['audit', filters],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => pageOfAudit(filters, pageParam),
    getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
    select: ({ pages }) => [...new Map(pages.flatMap(({ entries }) => entries).map((row) => [row.id, row])).values()],
  });
