import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Brain, RefreshCw } from 'lucide-react';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { StatusBadge, type Tone } from '../../parts/status-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { memoryText } from '../../text/playground.ts';
import { memoriesQuery } from '../queries.ts';

const TONES: Record<keyof typeof memoryText.statuses, Tone> = {
  pending: 'neutral',
  processing: 'active',
  ready: 'good',
  failed: 'bad',
};

/** The newest memories, shown before a search. */
export function StoredMemories() {
  const memories = useQuery(memoriesQuery);
  return (
    <>
      <Group justify="space-between" px="md" py="xs" className="output-bar">
        <Title order={2} size="h5">
          {memoryText.stored}
        </Title>
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<RefreshCw size={14} aria-hidden />}
          loading={memories.isRefetching}
          onClick={() => void memories.refetch()}
        >
          {memoryText.refresh}
        </Button>
      </Group>
      <Loaded query={memories}>
        {(stored) =>
          stored.length === 0 ? (
            <EmptyState icon={Brain} title={memoryText.emptyTitle}>
              {memoryText.empty}
            </EmptyState>
          ) : (
            <Stack gap="sm" p="md" className="output-scroll" role="region" aria-label={memoryText.stored} tabIndex={0}>
              {stored.map(({ id, title, excerpt, status, error, created_at: createdAt, characters }) => (
                <div key={id}>
                  <Group gap="xs">
                    <Text size="sm" fw={600}>
                      {title ?? memoryText.untitled}
                    </Text>
                    <StatusBadge tone={TONES[status]}>{memoryText.statuses[status]}</StatusBadge>
                    <Text size="xs" c="dimmed">
                      <Time at={createdAt} /> · {memoryText.characters(characters)}
                    </Text>
                  </Group>
                  <Text size="sm" lineClamp={2}>
                    {excerpt}
                  </Text>
                  {error && (
                    <Text size="sm" c="dimmed">
                      {error.message}
                    </Text>
                  )}
                </div>
              ))}
            </Stack>
          )
        }
      </Loaded>
    </>
  );
}
