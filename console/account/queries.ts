import { infiniteQueryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';

const PAGE_SIZE = 100;

export type LoginSession = Awaited<ReturnType<typeof pageOfSessions>>['sessions'][number];

function pageOfSessions(page: number) {
  return dataOf(api.GET('/user/sessions', { params: { query: { page, limit: PAGE_SIZE } } }));
}

export const sessionsQuery = infiniteQueryOptions({
  queryKey: ['login-sessions'],
  initialPageParam: 1,
  queryFn: ({ pageParam }) => pageOfSessions(pageParam),
  getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
  select: ({ pages }) => pages.flatMap(({ sessions }) => sessions),
});
