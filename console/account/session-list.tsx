import { Button, Group, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { toLogin } from '../app/to-login.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { LoadMore } from '../parts/load-more.tsx';
import { notifyDone, notifyFailed } from '../parts/notify.ts';
import { ErrorState, LoadingState } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { accountText as text } from '../text/account.ts';
import { clientName } from './client-name.ts';
import { type LoginSession, sessionsQuery } from './queries.ts';

export function SessionList() {
  const sessions = useInfiniteQuery(sessionsQuery);
  if (sessions.data === undefined) {
    if (sessions.error) return <ErrorState error={sessions.error} onRetry={() => void sessions.refetch()} />;
    return <LoadingState />;
  }
  const end = async (current: boolean) => {
    const { sessions_ended: ended } = await dataOf(api.DELETE('/user/sessions', { params: { query: { current } } }));
    if (current) {
      toLogin();
      return;
    }
    await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey });
    notifyDone(text.othersDone(ended));
  };
  return (
    <Stack gap="sm">
      <DataTable label={text.sessions} columns={COLUMNS} rows={sessions.data} rowKey={({ id }) => id} />
      <LoadMore list={sessions} />
      <Group gap="xs">
        {sessions.data.length > 1 && (
          <ConfirmButton
            title={text.othersTitle}
            message={text.othersMessage}
            confirmLabel={text.others}
            onConfirm={() => end(false)}
          >
            {text.others}
          </ConfirmButton>
        )}
        <ConfirmButton
          title={text.everywhereTitle}
          message={text.everywhereMessage}
          confirmLabel={text.everywhere}
          onConfirm={() => end(true)}
        >
          {text.everywhere}
        </ConfirmButton>
      </Group>
    </Stack>
  );
}

const COLUMNS: readonly Column<LoginSession>[] = [
  {
    id: 'client',
    header: text.client,
    cell: ({ user_agent: agent, current }) => (
      <Group gap="xs">
        <Text size="sm" fw={600} title={agent ?? undefined} lineClamp={1}>
          {clientName(agent)}
        </Text>
        {current && <StatusBadge tone="good">{text.thisSession}</StatusBadge>}
      </Group>
    ),
  },
  { id: 'address', header: text.address, visibleFrom: 'sm', cell: ({ address }) => address },
  {
    id: 'used',
    header: text.lastUsed,
    visibleFrom: 'xs',
    cell: ({ last_used_at: used, created_at: created }) => <Time at={used ?? created} />,
  },
  { id: 'created', header: text.loggedIn, visibleFrom: 'md', cell: ({ created_at: at }) => <Time at={at} /> },
  {
    id: 'actions',
    header: text.actions,
    align: 'right',
    cell: (session) => !session.current && <EndSession session={session} />,
  },
];

function EndSession({ session: { id, user_agent: agent } }: { session: LoginSession }) {
  const end = useMutation({
    mutationFn: () => dataOf(api.DELETE('/user/sessions/{id}', { params: { path: { id } } })),
    onError: notifyFailed,
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey });
      notifyDone(text.loggedOut);
    },
  });
  return (
    <Button
      size="compact-xs"
      variant="default"
      loading={end.isPending}
      onClick={() => end.mutate()}
      aria-label={text.logOutOther(clientName(agent))}
    >
      {text.logOut}
    </Button>
  );
}
