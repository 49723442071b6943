import { Paper, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Receipt } from 'lucide-react';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { Facts } from '../../parts/facts.tsx';
import { money } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { ledgerText } from '../../text/call.ts';
import type { Call } from '../call-data.ts';
import { type CallLedger, ledgerQuery } from '../queries.ts';

export function LedgerTab({ call }: { call: Call }) {
  const query = useQuery(ledgerQuery(call.call_id));
  return (
    <Loaded query={query}>
      {({ charged_usd: charged, held_usd: held, entries }) =>
        entries.length === 0 ? (
          <EmptyState icon={Receipt} title={ledgerText.emptyTitle}>
            {ledgerText.empty}
          </EmptyState>
        ) : (
          <Stack>
            <Facts
              facts={[
                { label: ledgerText.charged, value: <b className="tabular">{money(charged)}</b> },
                { label: ledgerText.held, value: <span className="tabular">{money(held)}</span> },
              ]}
            />
            <Paper withBorder p="xs">
              <DataTable label={ledgerText.entries} columns={COLUMNS} rows={entries} rowKey={({ id }) => id} />
            </Paper>
          </Stack>
        )
      }
    </Loaded>
  );
}

type Entry = CallLedger['entries'][number];

const COLUMNS: readonly Column<Entry>[] = [
  { id: 'at', header: ledgerText.columns.at, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    id: 'kind',
    header: ledgerText.columns.kind,
    cell: ({ kind, description }) => (
      <>
        {ledgerText.kind[kind]}
        {description !== '' && (
          <Text size="xs" c="dimmed">
            {description}
          </Text>
        )}
      </>
    ),
  },
  amount('amount', ledgerText.columns.amount, (entry) => money(entry.amount_usd)),
  amount('available', ledgerText.columns.available, (entry) => signed(entry.available_change_usd)),
  amount('held', ledgerText.columns.held, (entry) => signed(entry.held_change_usd)),
  {
    id: 'key',
    header: ledgerText.columns.key,
    visibleFrom: 'md',
    cell: ({ operation_key: key }) => (
      <Text size="xs" c="dimmed" ff="monospace">
        {key}
      </Text>
    ),
  },
];

function amount(id: string, header: string, text: (entry: Entry) => string): Column<Entry> {
  return { id, header, align: 'right', cell: (entry) => <span className="tabular unbroken">{text(entry)}</span> };
}

function signed(usd: number): string {
  return usd > 0 ? `+${money(usd)}` : money(usd);
}
