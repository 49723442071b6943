import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';

const PAGE_SIZE = 100;

export type Member = Awaited<ReturnType<typeof pageOfMembers>>['members'][number];
export type Invitation = Awaited<ReturnType<typeof pageOfInvitations>>['invitations'][number];

function pageOfMembers(id: string, page: number) {
  return dataOf(api.GET('/workspaces/{id}/members', { params: { path: { id }, query: { page, limit: PAGE_SIZE } } }));
}

function pageOfInvitations(id: string, page: number) {
  return dataOf(
    api.GET('/workspaces/{id}/invitations', { params: { path: { id }, query: { page, limit: PAGE_SIZE } } }),
  );
}

export const membersQuery = (workspaceId: string) =>
  queryOptions({
    queryKey: ['members', workspaceId],
    queryFn: async (): Promise<Member[]> => {
      const members: Member[] = [];
      for (let page = 1; ; page += 1) {
        const next = await pageOfMembers(workspaceId, page);
        members.push(...next.members);
        if (page >= next.pagination.pages) return members;
      }
    },
  });

export const invitationsQuery = (workspaceId: string) =>
  infiniteQueryOptions({
    queryKey: ['invitations', workspaceId],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => pageOfInvitations(workspaceId, pageParam),
    getNextPageParam: ({ pagination: { page, pages } }) => (page < pages ? page + 1 : undefined),
    select: ({ pages }) => pages.flatMap(({ invitations }) => invitations),
  });
