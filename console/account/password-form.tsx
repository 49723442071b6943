import { Alert, Button, Checkbox, Group, PasswordInput, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { sessionQuery, useSession } from '../app/session.ts';
import { notifyDone } from '../parts/notify.ts';
import { accountText as text } from '../text/account.ts';
import { sessionsQuery } from './queries.ts';

export function PasswordForm() {
  const { email, has_password: hasPassword } = useSession();
  const change = useMutation({
    mutationFn: (form: HTMLFormElement) => {
      const fields = new FormData(form);
      return dataOf(
        api.PUT('/user/password', {
          body: {
            ...(hasPassword && { current_password: String(fields.get('current')) }),
            new_password: String(fields.get('next')),
            keep_sessions: fields.has('keep'),
          },
        }),
      );
    },
    onSuccess: async ({ sessions_ended: ended }, form) => {
      form.reset();
      notifyDone(ended === 0 ? text.saved : text.savedAndEnded(ended));
      await Promise.all([
        queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey }),
        queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
      ]);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(event.currentTarget);
      }}
    >
      <Stack maw={420}>
        {/* Password managers look for the user name beside the password. */}
        <input type="text" name="username" autoComplete="username" value={email} readOnly hidden />
        {hasPassword && <PasswordInput name="current" label={text.current} autoComplete="current-password" required />}
        <PasswordInput
          name="next"
          label={text.next}
          description={text.nextHint}
          autoComplete="new-password"
          maxLength={256}
          required
        />
        <Checkbox name="keep" label={text.keep} />
        {change.error && <Alert color="red">{change.error.message}</Alert>}
        <Group>
          <Button type="submit" loading={change.isPending}>
            {hasPassword ? text.change : text.set}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
