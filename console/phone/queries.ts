import { queryOptions } from '@tanstack/react-query';
import { apiIn, dataOf } from '../app/api.ts';
import { useSession } from '../app/session.ts';
import { agentPhone } from './agent-phone.ts';

const MOST_COLLEAGUES = 100;

/** The users to transfer to in the call's workspace, also after a switch to another one. */
export function useColleagues() {
  const { workspace } = useSession();
  const id = agentPhone.workspaceId ?? workspace.id;
  return queryOptions({
    queryKey: ['colleagues', id],
    queryFn: async () => {
      const params = { query: { limit: MOST_COLLEAGUES } };
      return (await dataOf(apiIn(id).GET('/phone/colleagues', { params }))).colleagues;
    },
  });
}
