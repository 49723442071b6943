import { queryOptions } from '@tanstack/react-query';
import { api, bodyOf, dataOf } from '../app/api.ts';
import { everyPage, MOST_PER_PAGE } from '../app/every-page.ts';

const STALE_MS = 5 * 60_000;

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  staleTime: STALE_MS,
  queryFn: async () => await dataOf(api.GET('/models')),
});

export const transcriptionLanguagesQuery = queryOptions({
  queryKey: ['stt-languages'],
  staleTime: STALE_MS,
  queryFn: async () => await dataOf(api.GET('/stt/languages')),
});

export type Tier = 'quality' | 'fast';

export const voicesQuery = (model: Tier) =>
  queryOptions({
    queryKey: ['voices', model],
    staleTime: STALE_MS,
    queryFn: async () => {
      const page = async (number: number) =>
        await bodyOf(api.GET('/voices', { params: { query: { model, page: number, limit: 100 } } }));
      const first = await page(1);
      const others = Array.from({ length: Math.max(0, first.meta.pagination.pages - 1) }, (_, index) =>
        page(index + 2),
      );
      return [first, ...(await Promise.all(others))].flatMap(({ data }) => data);
    },
  });

export type ListedVoice = Awaited<ReturnType<NonNullable<ReturnType<typeof voicesQuery>['queryFn']>>>[number];

export const rubricsQuery = queryOptions({
  queryKey: ['rubrics'],
  queryFn: async () => {
    const pageOf = (page: number) =>
      dataOf(api.GET('/judge/rubrics', { params: { query: { page, limit: MOST_PER_PAGE } } }));
    return (await everyPage(pageOf)).flatMap(({ rubrics }) => rubrics);
  },
});

export const memoriesQuery = queryOptions({
  queryKey: ['memories', 'newest'],
  queryFn: async () => (await dataOf(api.GET('/memory', { params: { query: { limit: 10 } } }))).memories,
});
