import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { everyPage, MOST_PER_PAGE } from '../app/every-page.ts';
import { queryClient } from '../app/query-client.ts';

const PAGE_SIZE = MOST_PER_PAGE;
const SETTLING_MS = 2_000;

export type Trunk = Awaited<ReturnType<typeof pageOfTrunks>>['trunks'][number];
export type RentedNumber = Awaited<ReturnType<typeof pageOfNumbers>>['numbers'][number];
export type InboundRule = NonNullable<RentedNumber['inbound']>;

function pageOfTrunks(page: number) {
  return dataOf(api.GET('/dialer/trunks', { params: { query: { page, limit: PAGE_SIZE } } }));
}

function pageOfNumbers(page: number) {
  return dataOf(api.GET('/dialer/numbers', { params: { query: { page, limit: PAGE_SIZE } } }));
}

/** All trunks. Polls until first checks and registrations are done, because no stream reports them. */
export const trunksQuery = queryOptions({
  queryKey: ['trunks'],
  queryFn: async (): Promise<Trunk[]> => (await everyPage(pageOfTrunks)).flatMap(({ trunks }) => trunks),
  refetchInterval: ({ state }) => (state.data?.some(isSettling) ? SETTLING_MS : false),
});

export type Probe = Awaited<ReturnType<typeof fetchTrunk>>['recent_probes'][number];

function fetchTrunk(id: string) {
  return dataOf(api.GET('/dialer/trunks/{id}', { params: { path: { id } } }));
}

/** A trunk with its latest checks. `since` changes with the state, which invalidates the checks. */
export const trunkQuery = ({ id, reachability: { since } }: Trunk) =>
  queryOptions({ queryKey: ['trunk', id, since], queryFn: () => fetchTrunk(id), placeholderData: keepPreviousData });

function isSettling({ status, health, reachability, register, registration }: Trunk): boolean {
  if (status !== 'active') return false;
  // A failed registration is retried automatically.
  return (
    (health.mode === 'options' && reachability.reason === 'not_checked') ||
    (register && registration?.state !== 'registered')
  );
}

export const numbersQuery = infiniteQueryOptions({
  queryKey: ['numbers'],
  initialPageParam: 1,
  queryFn: ({ pageParam }) => pageOfNumbers(pageParam),
  getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
  select: ({ pages }) => pages.flatMap(({ numbers }) => numbers),
});

export const availableQuery = (pattern: string) =>
  queryOptions({
    queryKey: ['available-numbers', pattern],
    queryFn: () =>
      dataOf(
        api.GET('/dialer/numbers/available', {
          params: { query: { limit: PAGE_SIZE, ...(pattern !== '' && { pattern }) } },
        }),
      ),
  });

export const poolQuery = queryOptions({
  queryKey: ['number-pool'],
  queryFn: () => dataOf(api.GET('/dialer/pool')),
});

export const callingRulesQuery = queryOptions({
  queryKey: ['calling-rules'],
  queryFn: () => dataOf(api.GET('/dialer/calling-rules')),
});

export const doNotCallQuery = infiniteQueryOptions({
  queryKey: ['do-not-call'],
  initialPageParam: 1,
  queryFn: ({ pageParam }) =>
    dataOf(api.GET('/dialer/do-not-call', { params: { query: { page: pageParam, limit: PAGE_SIZE } } })),
  getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
});

/** Refreshes the lists that depend on trunks or numbers. */
export function refreshNumbers(): Promise<unknown> {
  const stale = ['trunks', 'numbers', 'available-numbers', 'number-pool'];
  return queryClient.invalidateQueries({ predicate: ({ queryKey }) => stale.includes(String(queryKey[0])) });
}
