import { Button, Group, Stack, Text, Tooltip } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Activity } from 'lucide-react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { notifyDone, notifyFailed } from '../parts/notify.ts';
import { StatusBadge } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { probeText as text } from '../text/trunks.ts';
import { type Probe, refreshNumbers, type Trunk, trunkQuery } from './queries.ts';
import './trunk-probes.css';

const SHOWN = 5;

/** Latest checks of a trunk, and a button for another. */
export function TrunkProbes({ trunk }: { trunk: Trunk }) {
  const { id } = trunk;
  const detail = useQuery(trunkQuery(trunk));
  const probe = useMutation({
    mutationFn: () => dataOf(api.POST('/dialer/trunks/{id}/probe', { params: { path: { id } }, body: {} })),
    onError: notifyFailed,
    onSuccess: async ({ probes }) => {
      await Promise.all([refreshNumbers(), queryClient.invalidateQueries({ queryKey: ['trunk', id] })]);
      if (probes.every(({ error }) => error === null)) notifyDone(text.responds);
      else notifyFailed(text.doesNot);
    },
  });
  const probes = detail.data?.recent_probes ?? [];
  return (
    <Stack gap="xs" mt="sm">
      <Group justify="space-between">
        <Text size="sm" fw={600}>
          {text.title}
        </Text>
        <Button
          size="compact-xs"
          variant="default"
          leftSection={<Activity size={14} aria-hidden />}
          loading={probe.isPending}
          onClick={() => probe.mutate()}
        >
          {text.now}
        </Button>
      </Group>
      {detail.error && <Text size="sm">{detail.error.message}</Text>}
      {detail.data && probes.length === 0 && (
        <Text size="sm" c="dimmed">
          {text.none}
        </Text>
      )}
      {probes.length > 1 && <Strip probes={probes} />}
      {probes.slice(0, SHOWN).map((each) => (
        <ProbeLine key={`${each.at} ${each.sip_uri} ${each.node}`} probe={each} />
      ))}
    </Stack>
  );
}

/** Oldest first, as in a chart. */
function Strip({ probes }: { probes: readonly Probe[] }) {
  const failed = probes.filter(({ error }) => error !== null).length;
  return (
    <div className="probe-strip" role="img" aria-label={text.summary(probes.length, failed)}>
      {probes.toReversed().map((probe) => (
        <Tooltip key={`${probe.at} ${probe.sip_uri} ${probe.node}`} label={resultOf(probe)}>
          <div className="probe" data-failed={probe.error !== null} />
        </Tooltip>
      ))}
    </div>
  );
}

function ProbeLine({ probe }: { probe: Probe }) {
  return (
    <Group gap="xs" wrap="nowrap" justify="space-between">
      <Group gap="xs">
        <StatusBadge tone={probe.error === null ? 'good' : 'bad'}>{resultOf(probe)}</StatusBadge>
        <Text size="xs" c="dimmed">
          {probe.sip_uri}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        <Time at={probe.at} />
      </Text>
    </Group>
  );
}

function resultOf({ error, sip_status: status, round_trip_ms: roundTripMs }: Probe): string {
  if (error !== null) return text.errors[error];
  return text.answered(status ?? 0, Math.round(roundTripMs ?? 0));
}
