import { SegmentedControl, Text } from '@mantine/core';
import { CircleCheck } from 'lucide-react';
import { useUrlSearch } from '../app/url-search.ts';
import { DataTable } from '../parts/data-table.tsx';
import { EmptyState } from '../parts/states.tsx';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { healthText as text } from '../text/health.ts';
import type { SystemHealth } from './queries.ts';
import { Section } from './section.tsx';

type Check = SystemHealth['checks'][number];

const TONES: Record<Check['status'], Tone> = { ok: 'good', warning: 'warning', failed: 'bad' };
const ORDER: Check['status'][] = ['failed', 'warning', 'ok'];

/** The worst first; `?show=problems` shows only problems. */
export function Checks({ checks }: { checks: readonly Check[] }) {
  const [search, change] = useUrlSearch();
  const sorted = checks.toSorted((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
  const problems = sorted.filter(({ status }) => status !== 'ok');
  const isFiltered = search.show === 'problems';
  const filter = (
    <SegmentedControl
      size="xs"
      aria-label={text.show}
      value={isFiltered ? 'problems' : 'all'}
      onChange={(value) => change({ show: value === 'problems' ? value : undefined })}
      data={[
        { value: 'all', label: text.all(checks.length) },
        { value: 'problems', label: text.problems(problems.length) },
      ]}
    />
  );
  return (
    <Section title={text.checks} actions={filter}>
      <DataTable
        label={text.checks}
        rows={isFiltered ? problems : sorted}
        rowKey={({ id }) => id}
        empty={
          <EmptyState icon={CircleCheck} title={text.noProblems}>
            {text.noProblemsHint}
          </EmptyState>
        }
        columns={[
          {
            id: 'status',
            header: text.status,
            cell: ({ status }) => <StatusBadge tone={TONES[status]}>{text.checkStatuses[status]}</StatusBadge>,
          },
          { id: 'name', header: text.check, cell: ({ name }) => name },
          { id: 'message', header: text.result, cell: (check) => <Result check={check} /> },
        ]}
      />
    </Section>
  );
}

function Result({ check: { message, action } }: { check: Check }) {
  return (
    <>
      <Text size="sm">{message}</Text>
      {action !== null && (
        <Text size="sm" fw={500}>
          {action}
        </Text>
      )}
    </>
  );
}
