import { Group, Paper, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Webhook } from 'lucide-react';
import { useMay } from '../../app/session.ts';
import { ConfirmButton } from '../../parts/confirm-button.tsx';
import { CopyField } from '../../parts/copy-field.tsx';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { notifyDone } from '../../parts/notify.ts';
import { EmptyState } from '../../parts/states.tsx';
import { StatusBadge, type Tone } from '../../parts/status-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { deliveriesText } from '../../text/call.ts';
import type { Call } from '../call-data.ts';
import { type Delivery, deliveriesQuery, replayDelivery } from '../queries.ts';

const TONES: Record<Delivery['status'], Tone> = { pending: 'active', delivered: 'good', failed: 'bad' };

/** The call's callback and webhook deliveries, with the result of each attempt. */
export function DeliveriesTab({ call }: { call: Call }) {
  const query = useQuery(deliveriesQuery(call.call_id));
  return (
    <Loaded query={query}>
      {({ deliveries }) =>
        deliveries.length === 0 ? (
          <EmptyState icon={Webhook} title={deliveriesText.emptyTitle}>
            {deliveriesText.empty}
          </EmptyState>
        ) : (
          <Stack>
            {deliveries.map((delivery) => (
              <DeliveryCard key={delivery.id} callId={call.call_id} delivery={delivery} />
            ))}
          </Stack>
        )
      }
    </Loaded>
  );
}

function DeliveryCard({ callId, delivery }: { callId: string; delivery: Delivery }) {
  const { event, kind, status, url, replay_of: replayOf, message_id: eventId, created_at: at, log } = delivery;
  return (
    <Paper withBorder p="md" component="article" aria-label={`${event} ${url}`}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <div>
          <Group gap="xs">
            <StatusBadge tone={TONES[status]}>{deliveriesText.status[status]}</StatusBadge>
            <Text size="sm" fw={500}>
              {event}
            </Text>
            <Text size="sm" c="dimmed">
              {replayOf === null
                ? deliveriesText.kind[kind]
                : `${deliveriesText.kind[kind]}, ${deliveriesText.replayOf}`}
            </Text>
            <Text size="sm" c="dimmed">
              <Time at={at} />
            </Text>
          </Group>
          <Text size="sm" mt={4}>
            {url}
          </Text>
          <CopyField value={eventId} label={deliveriesText.eventId} />
        </div>
        <Replay callId={callId} delivery={delivery} />
      </Group>
      <DataTable
        label={deliveriesText.attemptsOf(event)}
        columns={COLUMNS}
        rows={log}
        rowKey={({ attempt }) => attempt}
        empty={
          <Text size="sm" c="dimmed">
            {deliveriesText.noAttempts}
          </Text>
        }
      />
      {delivery.next_attempt_at && (
        <Text size="sm" c="dimmed" mt="xs">
          {deliveriesText.nextAttempt}: <Time at={delivery.next_attempt_at} show="time" />
        </Text>
      )}
    </Paper>
  );
}

function Replay({ callId, delivery: { id, url } }: { callId: string; delivery: Delivery }) {
  const may = useMay();
  if (!may.write) return null;
  const replay = async () => {
    await replayDelivery(callId, id);
    notifyDone(deliveriesText.replayed);
  };
  return (
    <ConfirmButton
      color="blue"
      title={deliveriesText.replayTitle}
      message={deliveriesText.replayMessage(url)}
      confirmLabel={deliveriesText.replay}
      onConfirm={replay}
    >
      {deliveriesText.replay}
    </ConfirmButton>
  );
}

type Attempt = Delivery['log'][number];

const COLUMNS: readonly Column<Attempt>[] = [
  { id: 'attempt', header: deliveriesText.columns.attempt, cell: ({ attempt }) => attempt },
  { id: 'at', header: deliveriesText.columns.at, cell: ({ started_at: at }) => <Time at={at} /> },
  {
    id: 'status',
    header: deliveriesText.columns.status,
    cell: ({ http_status: status }) => (status === null ? deliveriesText.noResponse : deliveriesText.http(status)),
  },
  {
    id: 'duration',
    header: deliveriesText.columns.duration,
    align: 'right',
    cell: ({ duration_ms: ms }) => <span className="tabular">{deliveriesText.milliseconds(ms)}</span>,
  },
  { id: 'error', header: deliveriesText.columns.error, cell: ({ error }) => error },
];
