import { Alert, Anchor, Button, Card, Center, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { notifyFailed } from '../parts/notify.ts';
import { ErrorState, LoadingState } from '../parts/states.tsx';
import { agentPhone } from '../phone/agent-phone.ts';
import { joinText as text } from '../text/people.ts';
import { api, dataOf } from './api.ts';
import { queryClient } from './query-client.ts';
import { sessionQuery, signIn, signOut } from './session.ts';
import { useUrlSearch } from './url-search.ts';
import { enterWorkspace } from './workspace.ts';

/** Target of an invitation link (`?token=`): joins with an existing or new account. */
export function JoinPage() {
  const [{ token }] = useUrlSearch();
  const session = useQuery(sessionQuery);
  return (
    <Center component="main" mih="100vh" p="md">
      <Card withBorder shadow="sm" w="100%" maw={420} padding="xl">
        <Stack>
          <Title order={1} size="h3">
            {text.title}
          </Title>
          {token === undefined ? (
            <Text>{text.noToken}</Text>
          ) : session.error ? (
            <ErrorState error={session.error} onRetry={() => void session.refetch()} />
          ) : session.data === undefined ? (
            <LoadingState />
          ) : session.data === null ? (
            <RegisterForm token={token} />
          ) : (
            <AcceptForm token={token} email={session.data.email} />
          )}
        </Stack>
      </Card>
    </Center>
  );
}

function AcceptForm({ token, email }: { token: string; email: string }) {
  const navigate = useNavigate();
  const accept = useMutation({
    mutationFn: () => dataOf(api.POST('/invitations/accept', { body: { token } })),
    onSuccess: async ({ workspace_id: id }) => {
      enterWorkspace(id);
      queryClient.clear();
      await navigate({ to: '/live' });
    },
  });
  return (
    <>
      <Text>{text.as(email)}</Text>
      {accept.error && <Alert color="red">{accept.error.message}</Alert>}
      <Button onClick={() => accept.mutate()} loading={accept.isPending}>
        {text.accept}
      </Button>
      <Button variant="subtle" onClick={() => void signOut().then(startAnew, notifyFailed)}>
        {text.otherAccount}
      </Button>
    </>
  );
}

/** Must not keep the phone of the user who has logged out. */
function startAnew(): void {
  agentPhone.stop();
  location.reload();
}

function RegisterForm({ token }: { token: string }) {
  const navigate = useNavigate();
  const register = useMutation({
    mutationFn: (fields: object) => signIn('/auth/register', { ...fields, invitation: token }),
    onSuccess: () => navigate({ to: '/live' }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        register.mutate(Object.fromEntries(new FormData(event.currentTarget)));
      }}
    >
      <Stack>
        <Text>{text.register}</Text>
        <TextInput name="email" type="email" label={text.email} autoComplete="username" required />
        <TextInput name="name" label={text.name} autoComplete="name" maxLength={100} />
        <PasswordInput
          name="password"
          label={text.password}
          description={text.passwordHint}
          autoComplete="new-password"
          required
        />
        {register.error && <Alert color="red">{register.error.message}</Alert>}
        <Button type="submit" loading={register.isPending}>
          {text.submit}
        </Button>
        <Anchor component={Link} to="/login" search={{ next: `/join?token=${encodeURIComponent(token)}` } as never}>
          {text.haveAccount}
        </Anchor>
      </Stack>
    </form>
  );
}
