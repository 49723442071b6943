import { Button, Center, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { notifyFailed } from '../parts/notify.ts';
import { EmptyState } from '../parts/states.tsx';
import { shellText, guardText as text } from '../text/app.ts';
import { api, dataOf } from './api.ts';
import { sessionQuery, signOut } from './session.ts';
import { switchWorkspace } from './switch-workspace.ts';
import { toLogin } from './to-login.ts';

/** Redirects to the login when the session has ended, for example from another browser, and back afterwards. */
export function SessionGuard({ children }: { children: ReactNode }) {
  const { data: session } = useQuery(sessionQuery);
  const router = useRouter();
  const isEnded = session === null;
  // Runs once. This component renders again until the login has loaded, and the location is then the login's.
  useEffect(() => {
    const next = router.state.location.href;
    if (isEnded) void router.navigate({ to: '/login', search: { next } as never, replace: true });
  }, [isEnded, router]);
  if (isEnded) return null;
  if (session?.workspaces.length === 0) return <NoWorkspace />;
  return children;
}

/** For a user who was removed from the last workspace. */
function NoWorkspace() {
  const create = useMutation({
    mutationFn: async (form: HTMLFormElement) => {
      const name = String(new FormData(form).get('name')).trim();
      const { id } = await dataOf(api.POST('/workspaces', { body: { name } }));
      await switchWorkspace(id);
    },
  });
  return (
    <Center component="main" mih="100vh">
      <EmptyState title={text.noWorkspace}>
        <p>{text.noWorkspaceHint}</p>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate(event.currentTarget);
          }}
        >
          <TextInput name="name" label={text.workspaceName} maxLength={100} error={create.error?.message} required />
          <Button type="submit" mt="sm" loading={create.isPending}>
            {text.createWorkspace}
          </Button>
          <Button mt="sm" ml="xs" variant="default" onClick={() => void signOut().then(toLogin, notifyFailed)}>
            {shellText.signOut}
          </Button>
        </form>
      </EmptyState>
    </Center>
  );
}
