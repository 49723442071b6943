import { queryOptions } from '@tanstack/react-query';
import { apiIn, dataOf } from '../app/api.ts';
import { everyPage, MOST_PER_PAGE } from '../app/every-page.ts';

/** The users to transfer to in this workspace. */
export function colleaguesQuery(workspaceId: string) {
  return queryOptions({
    queryKey: ['colleagues', workspaceId],
    queryFn: async () => {
      const pageOf = (page: number) =>
        dataOf(apiIn(workspaceId).GET('/phone/colleagues', { params: { query: { page, limit: MOST_PER_PAGE } } }));
      return (await everyPage(pageOf)).flatMap(({ colleagues }) => colleagues);
    },
  });
}
