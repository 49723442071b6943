import { Accordion, Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { RefreshCw } from 'lucide-react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { useMay } from '../app/session.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { LoadMore } from '../parts/load-more.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone, notifyFailed } from '../parts/notify.ts';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { webhookPanelText as text } from '../text/developers.ts';
import { type Delivery, type DeliveryStatus, deliveriesQuery } from './queries.ts';

const TONES: Record<DeliveryStatus, Tone> = { pending: 'active', delivered: 'good', failed: 'bad' };

/** The filter (`?delivery=`) is in the address. */
export function Deliveries({ webhookId }: { webhookId: string }) {
  const [{ delivery }, change] = useUrlSearch();
  const status = delivery !== undefined && delivery in TONES ? (delivery as DeliveryStatus) : undefined;
  const deliveries = useInfiniteQuery(deliveriesQuery(webhookId, status));
  return (
    <>
      <Group gap="xs" mb="xs">
        <NativeSelect
          size="xs"
          aria-label={text.deliveries}
          value={status ?? ''}
          onChange={(event) => change({ delivery: event.currentTarget.value })}
          data={[
            { value: '', label: text.allStatuses },
            ...Object.entries(text.statuses).map(([value, label]) => ({ value, label })),
          ]}
        />
        <Button
          size="xs"
          variant="default"
          leftSection={<RefreshCw size={14} aria-hidden />}
          loading={deliveries.isRefetching}
          onClick={() => void deliveries.refetch()}
        >
          {text.refresh}
        </Button>
      </Group>
      <Loaded query={deliveries}>
        {(rows) => (
          <>
            {rows.length === 0 && (
              <Text size="sm" c="dimmed">
                {status === undefined ? text.noDeliveries : text.noMatch}
              </Text>
            )}
            <Accordion chevronPosition="left">
              {rows.map((each) => (
                <DeliveryItem key={each.id} delivery={each} />
              ))}
            </Accordion>
            <LoadMore list={deliveries} />
          </>
        )}
      </Loaded>
    </>
  );
}

function DeliveryItem({ delivery }: { delivery: Delivery }) {
  const { id, event, status, attempts, created_at: created, replay_of: replayOf } = delivery;
  return (
    <Accordion.Item value={id}>
      <Accordion.Control>
        <Group gap="xs" justify="space-between">
          <Group gap="xs">
            <StatusBadge tone={TONES[status]}>{text.statuses[status]}</StatusBadge>
            <Text size="sm" fw={600}>
              {event}
            </Text>
            {replayOf !== null && <StatusBadge tone="neutral">{text.replayOf}</StatusBadge>}
          </Group>
          <Text size="xs" c="dimmed">
            {text.attempts(attempts)} · <Time at={created} />
          </Text>
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Attempts delivery={delivery} />
      </Accordion.Panel>
    </Accordion.Item>
  );
}

function Attempts({ delivery }: { delivery: Delivery }) {
  const { id, subscription_id: webhookId, log, next_attempt_at: next } = delivery;
  const may = useMay();
  const replay = useMutation({
    mutationFn: () => dataOf(api.POST('/webhooks/deliveries/{id}/replay', { params: { path: { id } } })),
    onError: notifyFailed,
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['deliveries', webhookId] });
      notifyDone(text.replayed);
    },
  });
  return (
    <Stack gap={6} align="flex-start">
      {log.map(({ attempt, http_status: http, error, started_at: at, duration_ms: ms }) => (
        <Text key={attempt} size="sm" component="div">
          <strong>{text.attempt(attempt)}</strong> · <Time at={at} /> · {http !== null && `${text.httpStatus(http)} · `}
          {text.tookMs(ms)}
          {error !== null && <div>{error}</div>}
        </Text>
      ))}
      {next !== null && (
        <Text size="sm" component="div">
          {text.next}: <Time at={next} />
        </Text>
      )}
      {may.administer && (
        <Button size="compact-xs" variant="default" loading={replay.isPending} onClick={() => replay.mutate()}>
          {text.replay}
        </Button>
      )}
    </Stack>
  );
}
