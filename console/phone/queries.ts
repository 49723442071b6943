import { queryOptions } from '@tanstack/react-query';
import { apiIn, dataOf } from '../app/api.ts';
import { useSession } from '../app/session.ts';
import { agentPhone } from './agent-phone.ts';

const MOST_COLLEAGUES = 100;

/** The other members of the call's workspace, also after a switch to another one. */
export function useColleagues() {
  const { id: ownId, workspace } = useSession();
  const id = agentPhone.workspaceId ?? workspace.id;
  return queryOptions({
    queryKey: ['members', id, 'colleagues'],
    queryFn: async () => {
      const params = { path: { id }, query: { limit: MOST_COLLEAGUES } };
      const { members } = await dataOf(apiIn(id).GET('/workspaces/{id}/members', { params }));
      return members.filter(({ user_id: userId }) => userId !== ownId);
    },
  });
}
