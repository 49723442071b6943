import { Alert, Anchor, Button, Card, Center, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link, useRouter } from '@tanstack/react-router';
import { signInText } from '../text/app.ts';
import { signIn } from './session.ts';
import { useUrlSearch } from './url-search.ts';

/** Signs in with a password, or with the one-time link that the server printed (`?token=`). */
export function LoginPage() {
  const [search] = useUrlSearch();
  return (
    <Center component="main" mih="100vh" p="md">
      <Card withBorder shadow="sm" w="100%" maw={400} padding="xl">
        {search.token === undefined ? <PasswordForm next={search.next} /> : <LinkForm token={search.token} />}
      </Card>
    </Center>
  );
}

function PasswordForm({ next }: { next: string | undefined }) {
  const login = useSignIn('/auth/login', next);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        login.mutate(Object.fromEntries(new FormData(event.currentTarget)));
      }}
    >
      <Stack>
        <Title order={1} size="h3">
          {signInText.title}
        </Title>
        <TextInput name="email" label={signInText.email} type="email" autoComplete="username" required />
        <PasswordInput name="password" label={signInText.password} autoComplete="current-password" required />
        {login.error && <Alert color="red">{login.error.message}</Alert>}
        <Button type="submit" loading={login.isPending}>
          {signInText.submit}
        </Button>
        <Text size="sm" c="dimmed">
          {signInText.forgot}
        </Text>
      </Stack>
    </form>
  );
}

/** Exchanges the token on a click, because link previews would use it up. */
function LinkForm({ token }: { token: string }) {
  const login = useSignIn('/auth/login-link', '/live');
  return (
    <Stack>
      <Title order={1} size="h3">
        {signInText.linkTitle}
      </Title>
      <Text>{signInText.linkHint}</Text>
      {login.error && <Alert color="red">{login.error.message}</Alert>}
      <Button onClick={() => login.mutate({ token })} loading={login.isPending} autoFocus>
        {signInText.linkSubmit}
      </Button>
      <Anchor component={Link} to="/login">
        {signInText.otherWay}
      </Anchor>
    </Stack>
  );
}

function useSignIn(path: '/auth/login' | '/auth/login-link', next: string | undefined) {
  const router = useRouter();
  return useMutation({
    mutationFn: (fields: object) => signIn(path, fields),
    onSuccess: () => router.history.replace(`/console${safePath(next)}`),
  });
}

/** Returns a path in the console only: a sign-in link must not redirect to another site. */
function safePath(next: string | undefined): string {
  const path = next?.replace(/^\/console(?=\/)/, '') ?? '/live';
  return /^\/(?![/\\])/.test(path) && !path.startsWith('/login') ? path : '/live';
}
