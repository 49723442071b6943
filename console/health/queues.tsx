import { DataTable } from '../parts/data-table.tsx';
import { count } from '../parts/format.ts';
import { healthText as text } from '../text/health.ts';
import type { SystemHealth } from './queries.ts';
import { Section } from './section.tsx';

export function Queues({ queues }: { queues: SystemHealth['queues'] }) {
  return (
    <Section title={text.queues}>
      <DataTable
        label={text.queues}
        rows={queues}
        rowKey={({ name }) => name}
        columns={[
          { id: 'name', header: text.queue, cell: ({ name }) => name },
          { id: 'waiting', header: text.waiting, align: 'right', cell: ({ waiting }) => count(waiting) },
          { id: 'active', header: text.active, align: 'right', cell: ({ active }) => count(active) },
          { id: 'delayed', header: text.delayed, align: 'right', cell: ({ delayed }) => count(delayed) },
        ]}
      />
    </Section>
  );
}
