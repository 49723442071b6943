import { Button, Paper, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Activity } from 'lucide-react';
import { lazy, Suspense, useMemo } from 'react';
import { patiently } from '../../app/load.ts';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { percent } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { overviewText, qualityText } from '../../text/call.ts';
import { roleText } from '../../text/call-words.ts';
import type { Call } from '../call-data.ts';
import { type CallQuality, qualityQuery } from '../queries.ts';
import { alignedSamples, type Metric, summaryOf } from './samples.ts';

const LineChart = lazy(() => patiently(() => import('../../parts/line-chart.tsx')));
const CHART_PX = 160;

/** Received quality of each party over time. */
export function QualityTab({ call }: { call: Call }) {
  const query = useQuery(qualityQuery(call.call_id));
  return (
    <Loaded query={query}>
      {(quality) =>
        quality.legs.length === 0 ? (
          <EmptyState
            icon={Activity}
            title={qualityText.emptyTitle}
            actions={
              !call.call_done && (
                <Button variant="light" loading={query.isFetching} onClick={() => void query.refetch()}>
                  {qualityText.refresh}
                </Button>
              )
            }
          >
            {call.call_done ? qualityText.empty : qualityText.emptyLive}
          </EmptyState>
        ) : (
          <Charts quality={quality} />
        )
      }
    </Loaded>
  );
}

const CHARTS: { metric: Metric; title: string; range?: [number, number]; format: (value: number) => string }[] = [
  { metric: 'mos', title: qualityText.mos, range: [1, 5], format: (value) => value.toFixed(1) },
  { metric: 'loss_percent', title: qualityText.loss, format: (value) => `${Number(value.toFixed(1))}` },
  { metric: 'jitter_ms', title: qualityText.jitter, format: (value) => `${Number(value.toFixed(1))}` },
  { metric: 'round_trip_ms', title: qualityText.roundTrip, format: (value) => `${Math.round(value)}` },
];

function Charts({ quality }: { quality: CallQuality }) {
  const { times, valuesOf } = useMemo(() => alignedSamples(quality), [quality]);
  const charts = useMemo(
    () =>
      CHARTS.map((chart) => ({
        ...chart,
        series: quality.legs.map((leg, index) => ({
          label: roleText[leg.role],
          color: colorOf(leg.role, index),
          values: valuesOf(leg, chart.metric),
        })),
      })),
    [quality, valuesOf],
  );
  const parties = quality.legs.map(({ role }) => roleText[role]).join(', ');
  return (
    <Stack>
      <Paper withBorder p="md">
        <DataTable label={qualityText.summary} columns={COLUMNS} rows={quality.legs} rowKey={({ leg_id: id }) => id} />
      </Paper>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
        {charts.map(({ metric, title, range, format, series }) => (
          <Paper key={metric} withBorder p="md" component="section" aria-label={title}>
            <Title order={2} size="h6" mb="xs">
              {title}
            </Title>
            {series.every(({ values }) => values.every((value) => value == null)) ? (
              <Text size="sm" c="dimmed">
                {qualityText.noRoundTrip}
              </Text>
            ) : (
              <Suspense fallback={<Skeleton height={CHART_PX} />}>
                <LineChart
                  label={qualityText.chart(title, parties)}
                  timeLabel={qualityText.time}
                  times={times}
                  series={series}
                  {...(range && { range })}
                  format={format}
                  heightPx={CHART_PX}
                />
              </Suspense>
            )}
          </Paper>
        ))}
      </SimpleGrid>
    </Stack>
  );
}

const COLORS = [
  { light: '#1864ab', dark: '#73ace4' },
  { light: '#087f5b', dark: '#38d9a9' },
  { light: '#d9480f', dark: '#ffa94d' },
  { light: '#7048e8', dark: '#b197fc' },
];

function colorOf(role: string, index: number) {
  const known = ['agent', 'customer'].indexOf(role);
  return COLORS[known >= 0 ? known : 2 + (index % 2)]!;
}

type QualityLeg = CallQuality['legs'][number];

const COLUMNS: readonly Column<QualityLeg>[] = [
  { id: 'party', header: qualityText.columns.party, cell: ({ role }) => roleText[role] },
  number('mos', qualityText.columns.mos, (leg) => summaryOf(leg).mos?.toFixed(2)),
  number('worst', qualityText.columns.worst, (leg) => summaryOf(leg).worstMos?.toFixed(2)),
  number('loss', qualityText.columns.loss, (leg) => percent(summaryOf(leg).loss)),
  number('jitter', qualityText.columns.jitter, (leg) => milliseconds(summaryOf(leg).jitterMs)),
  number('round-trip', qualityText.columns.roundTrip, (leg) => milliseconds(summaryOf(leg).roundTripMs)),
];

function number(id: string, header: string, text: (leg: QualityLeg) => string | undefined): Column<QualityLeg> {
  return { id, header, align: 'right', cell: (leg) => <span className="tabular">{text(leg) ?? '–'}</span> };
}

function milliseconds(value: number | null): string | undefined {
  return value === null ? undefined : overviewText.milliseconds(value);
}
