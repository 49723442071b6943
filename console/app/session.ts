import { queryOptions, useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { agentPhone } from '../phone/agent-phone.ts';
import { apiErrorOf, reach } from './api.ts';
import { ApiError } from './api-error.ts';
import { confirmSession, queryClient } from './query-client.ts';
import { currentWorkspaceId, enterWorkspace, watchWorkspace } from './workspace.ts';

export type Role = 'owner' | 'admin' | 'developer' | 'member' | 'viewer';

export interface Membership {
  id: string;
  name: string;
  plan: string;
  role: Role;
}

/** Response of `GET /user`. */
export interface SignedIn {
  id: number;
  email: string;
  name: string;
  has_password: boolean;
  workspaces: Membership[];
  session: { id: string; expires_at: string } | null;
  server: { version: string; registration: string; features: Record<string, boolean> };
}

/** The signed-in user; null without a session. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async (): Promise<SignedIn | null> => {
    const response = await reach('/user');
    const body = await response.json().catch(() => null);
    if (response.status === 401) return null;
    if (!response.ok) throw apiErrorOf(response, body);
    const user: SignedIn = body.data.user ?? body.data;
    if (userId !== null && userId !== user.id) return await startAnew();
    userId = user.id;
    chooseWorkspace(user);
    return user;
  },
});

/** The user of this page since it was loaded, also after the session has ended. */
let userId: number | null = null;

/** All tabs share the session's cookie, so each must notice when another one changes it. */
const otherTabs = new BroadcastChannel('tandem.session');
otherTabs.onmessage = confirmSession;

/** Loads the page anew for another user, who must not see drafts, the conversation or the phone of the first one. */
async function startAnew(): Promise<never> {
  agentPhone.stop();
  location.reload();
  return await new Promise(() => {});
}

/** Keeps the remembered workspace if the user is still a member of it. */
function chooseWorkspace({ workspaces }: SignedIn): void {
  const known = workspaces.find(({ id }) => id === currentWorkspaceId());
  const chosen = known ?? workspaces[0];
  if (chosen) enterWorkspace(chosen.id);
}

/** The user of a page that needs a session. */
export function useSession(): SignedIn & { workspace: Membership } {
  const { data } = useQuery(sessionQuery);
  const current = useSyncExternalStore(watchWorkspace, currentWorkspaceId);
  const workspace = data?.workspaces.find(({ id }) => id === current);
  if (!data || !workspace) throw new ApiError({ status: 401, code: 'UNAUTHORIZED', message: 'No session.' });
  return { ...data, workspace };
}

/** Permissions of the user's role. They only hide buttons; the server decides. */
export function useMay(): { write: boolean; administer: boolean; own: boolean } {
  const { role } = useSession().workspace;
  return { write: role !== 'viewer', administer: role === 'admin' || role === 'owner', own: role === 'owner' };
}

/** Signs in with a password or a one-time link; the session arrives as a cookie. @throws ApiError */
export async function signIn(
  path: '/auth/login' | '/auth/login-link' | '/auth/register',
  fields: object,
): Promise<void> {
  const response = await reach(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...fields, cookie: true }),
  });
  if (!response.ok) throw apiErrorOf(response, await response.json().catch(() => null));
  queryClient.clear();
  otherTabs.postMessage(null);
}

/** Load the page anew afterwards: it keeps showing the data of the user. @throws ApiError if the session continues */
export async function signOut(): Promise<void> {
  const response = await reach('/auth/logout', { method: 'POST' });
  if (!response.ok && response.status !== 401) throw apiErrorOf(response, await response.json().catch(() => null));
  otherTabs.postMessage(null);
}
