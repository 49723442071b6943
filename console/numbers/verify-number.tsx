import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { StatusBadge } from '../parts/status-badge.tsx';
import { verifyText as text } from '../text/numbers.ts';
import { refreshNumbers } from './queries.ts';

/** Polling interval: the call takes up to a minute, and no stream reports its end. */
const ASK_AGAIN_MS = 2_000;

/** Verifies a number that a trunk claims, by a call to it that must return over the trunk. */
export function VerifyNumber({ e164, trunkId }: { e164: string; trunkId: string }) {
  const [id, setId] = useState<string | null>(null);
  const verification = useQuery({
    queryKey: ['verification', id],
    enabled: id !== null,
    queryFn: async () => {
      const found = await dataOf(api.GET('/dialer/numbers/verifications/{id}', { params: { path: { id: id! } } }));
      if (found.status === 'verified') await refreshNumbers();
      return found;
    },
    refetchInterval: ({ state }) =>
      state.data === undefined || state.data.status === 'calling' ? ASK_AGAIN_MS : false,
  });
  const start = async () => {
    const started = await dataOf(api.POST('/dialer/numbers/verifications', { body: { e164, trunk_id: trunkId } }));
    setId(started.id);
  };
  const { status, failure = null } = verification.data ?? {};
  if (id !== null && status !== 'failed') return <StatusBadge tone="active">{text.calling}</StatusBadge>;
  return (
    <Group gap="xs">
      {failure !== null ? (
        <Text size="sm" role="alert">
          {text.failures[failure]}
        </Text>
      ) : (
        <StatusBadge tone="warning">{text.unverified}</StatusBadge>
      )}
      <ConfirmButton
        color="blue"
        variant="light"
        title={text.title(e164)}
        message={text.message}
        confirmLabel={text.confirm}
        onConfirm={start}
      >
        {text.verify}
      </ConfirmButton>
    </Group>
  );
}
