import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { useSession } from '../app/session.ts';

const MOST_COLLEAGUES = 100;

/** The other members of the workspace. */
export function useColleagues() {
  const { id: ownId, workspace } = useSession();
  return queryOptions({
    queryKey: ['members', workspace.id, 'colleagues'],
    queryFn: async () => {
      const params = { path: { id: workspace.id }, query: { limit: MOST_COLLEAGUES } };
      const { members } = await dataOf(api.GET('/workspaces/{id}/members', { params }));
      return members.filter(({ user_id: id }) => id !== ownId);
    },
  });
}
