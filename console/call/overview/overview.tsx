import { Code, Grid, Paper, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useMay } from '../../app/session.ts';
import { trunksQuery } from '../../numbers/queries.ts';
import { useServerNow } from '../../parts/clock.ts';
import { Facts } from '../../parts/facts.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { callText, overviewText } from '../../text/call.ts';
import { placedViaText, recordingStatusText } from '../../text/call-words.ts';
import type { Call, CallEvent } from '../call-data.ts';
import { callEventsQuery } from '../queries.ts';
import { EventList } from './event-list.tsx';
import { LaneChart } from './lane-chart.tsx';
import { lanesOf } from './lanes.ts';
import { LegTable } from './leg-table.tsx';

/** States and events over time, the parties, and the parameters of the call. */
export function Overview({ call }: { call: Call }) {
  const events = useQuery(callEventsQuery(call.call_id));
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 8 }}>
        <Stack gap="md">
          <Section title={overviewText.parties}>
            <LegTable call={call} />
          </Section>
          <Section title={overviewText.events}>
            <Loaded query={events}>{(loaded) => <Events call={call} events={loaded} />}</Loaded>
          </Section>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 4 }}>
        <Stack gap="md">
          <Section title={overviewText.details}>
            <Details call={call} />
          </Section>
          <Section title={overviewText.metadata}>
            <Metadata metadata={call.metadata} />
          </Section>
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Title order={2} size="h6" mb="sm">
        {title}
      </Title>
      {children}
    </Paper>
  );
}

function Events({ call, events }: { call: Call; events: CallEvent[] }) {
  const nowMs = useServerNow();
  if (events.length === 0) return <Text size="sm">{overviewText.noEvents}</Text>;
  return (
    <Stack gap="lg">
      <LaneChart lanes={lanesOf({ events, legs: call.legs, nowMs })} />
      <EventList events={events} legs={call.legs} />
    </Stack>
  );
}

function Details({ call }: { call: Call }) {
  const requested = (isRequested: boolean) => (isRequested ? overviewText.requested : overviewText.notRequested);
  const { callback_url: callback, api_key_name: key, placed_via: via, recording_status: recording } = call;
  const may = useMay();
  // Only admins see trunks, and a deleted one has only its id.
  const trunks = useQuery({ ...trunksQuery, enabled: may.administer, refetchInterval: false });
  const trunk = trunks.data?.find(({ id }) => id === call.outbound_trunk_id)?.name ?? call.outbound_trunk_id;
  return (
    <Facts
      columns="one"
      facts={[
        { label: callText.callerId, value: call.did },
        { label: overviewText.trunk, value: trunk },
        { label: callText.placedBy, value: key ?? placedViaText[via] },
        {
          label: overviewText.recording,
          value: recording ? recordingStatusText(recording) : requested(call.record_requested),
        },
        { label: overviewText.transcription, value: requested(call.transcribe_requested) },
        { label: overviewText.callback, value: callback ?? overviewText.noMetadata },
      ]}
    />
  );
}

function Metadata({ metadata }: { metadata: Call['metadata'] }) {
  if (metadata === null || Object.keys(metadata).length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {overviewText.noMetadata}
      </Text>
    );
  }
  return (
    <Code block tabIndex={0} role="region" aria-label={overviewText.metadata} className="wrapped">
      {JSON.stringify(metadata, null, 2)}
    </Code>
  );
}
