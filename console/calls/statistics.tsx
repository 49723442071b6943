import { Paper, Stack, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { DayBars } from '../parts/day-bars.tsx';
import { Facts } from '../parts/facts.tsx';
import { count, dateTime, day, duration, money, percent } from '../parts/format.ts';
import { statisticsText as text } from '../text/calls.ts';
import type { CallFilters } from './filters.ts';
import { type CallStatistics, statisticsQuery } from './queries.ts';

const CHART_PX = 56;

/** Answer rate, average talk and cost over time of all calls of the period. */
export function Statistics({ filters: { from, to } }: { filters: CallFilters }) {
  const period = { ...(from && { from }), ...(to && { to }) };
  const { data, error } = useQuery({ ...statisticsQuery(period), placeholderData: keepPreviousData });
  // The list below says why the server does not answer, or that no calls exist.
  if (error || data === undefined || data.total.calls === 0) return null;
  return (
    <Paper withBorder px="md" py="sm" component="section" aria-label={text.title}>
      <Stack gap="xs">
        <Title order={2} size="xs" c="dimmed">
          {text.period(day(data.from), lastDay(data.to))}
        </Title>
        <Totals total={data.total} />
        <Costs statistics={data} />
      </Stack>
    </Paper>
  );
}

function Totals({ total }: { total: CallStatistics['total'] }) {
  const { answer_seizure_ratio: answered, average_talk_seconds: talk, mos } = total;
  return (
    <Facts
      facts={[
        { label: text.calls, value: count(total.calls) },
        { label: text.answered, value: answered === null ? text.none : percent(answered) },
        { label: text.averageTalk, value: talk === null ? text.none : duration(talk) },
        { label: text.cost, value: money(total.cost_usd) },
        { label: text.mos, value: mos.mean === null ? text.none : mos.mean.toFixed(1) },
      ]}
    />
  );
}

function Costs({ statistics: { interval, intervals } }: { statistics: CallStatistics }) {
  const nameOf = interval === 'hour' ? dateTime : day;
  const bars = intervals.map(({ start, cost_usd: cost, calls }) => {
    const name = nameOf(start);
    return { key: start, name, value: cost, hint: text.bar(name, money(cost), count(calls)) };
  });
  return (
    <div>
      <Text size="xs" c="dimmed" mb={4}>
        {text.costBy[interval]}
      </Text>
      <DayBars bars={bars} heightPx={CHART_PX} label={(most) => text.chart[interval](bars.length, money(most))} />
    </div>
  );
}

/** The end of a period does not belong to it. */
function lastDay(to: string): string {
  return day(new Date(Date.parse(to) - 1).toISOString());
}
