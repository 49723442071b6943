import { Anchor, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useUrlSearch } from '../app/url-search.ts';
import { allKeysQuery } from '../developers/queries.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Filters } from '../parts/filters.tsx';
import { count, money } from '../parts/format.ts';
import { LoadMore } from '../parts/load-more.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { serviceText, ledgerText as text } from '../text/wallet.ts';
import { ExportButton } from './export-button.tsx';
import { ledgerFilters, SERVICES } from './filters.ts';
import { type LedgerEntry, ledgerQuery } from './queries.ts';

export function LedgerTab() {
  const [search] = useUrlSearch();
  const filters = ledgerFilters(search);
  const ledger = useInfiniteQuery(ledgerQuery(filters));
  const keys = useQuery(allKeysQuery);
  const keyNames = new Map((keys.data ?? []).map(({ id, name }) => [String(id), name]));
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <Filters
        choices={[
          { name: 'service', label: text.service, all: text.allServices, labels: SERVICES },
          { name: 'status', label: text.status, all: text.allStatuses, labels: text.statuses },
          {
            name: 'key',
            label: text.key,
            all: text.allKeys,
            labels: keyNames,
            otherLabel: filters.api_key_id && text.keyOf(filters.api_key_id),
          },
        ]}
      >
        <ExportButton query={{ type: 'usage', ...filters }} />
      </Filters>
      <Loaded query={ledger}>
        {(rows) => (
          <>
            <DataTable
              label={text.list}
              columns={COLUMNS}
              rows={rows}
              rowKey={({ id }) => id}
              empty={
                <EmptyState title={isFiltered ? text.noMatch : text.emptyTitle}>
                  {!isFiltered && text.emptyHint}
                </EmptyState>
              }
            />
            <LoadMore list={ledger} />
          </>
        )}
      </Loaded>
    </>
  );
}

const TONES: Record<LedgerEntry['status'], Tone> = {
  succeeded: 'neutral',
  partial: 'warning',
  failed: 'bad',
  refunded: 'active',
};

const COLUMNS: readonly Column<LedgerEntry>[] = [
  { id: 'time', header: text.time, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    id: 'service',
    header: text.service,
    cell: (entry) => (
      <Stack gap={0}>
        <Text size="sm" className="words">
          {serviceText[entry.service]}
        </Text>
        <Operation {...entry} />
      </Stack>
    ),
  },
  {
    id: 'quantity',
    header: text.quantity,
    align: 'right',
    visibleFrom: 'sm',
    cell: ({ quantity, unit }) => <span className="tabular">{text.quantityOf(count(quantity), unit)}</span>,
  },
  {
    id: 'status',
    header: text.status,
    visibleFrom: 'sm',
    cell: ({ status, direction }) => (
      <StatusBadge tone={direction === 'refund' ? 'good' : TONES[status]}>
        {direction === 'refund' ? text.refund : text.statuses[status]}
      </StatusBadge>
    ),
  },
  {
    id: 'amount',
    header: text.amount,
    align: 'right',
    cell: ({ amount, direction }) => (
      <span className="tabular unbroken">{money(direction === 'refund' ? amount : -amount)}</span>
    ),
  },
  {
    id: 'balance',
    header: text.balanceAfter,
    align: 'right',
    visibleFrom: 'md',
    cell: ({ balance_after: after }) => <span className="tabular unbroken">{money(after)}</span>,
  },
];

/** Links a call's charge to the call. */
function Operation({ service, operation, resource_id: id }: LedgerEntry) {
  if (service !== 'call' || id === null) {
    return (
      <Text size="xs" c="dimmed">
        {operation}
      </Text>
    );
  }
  return (
    <Anchor component={Link} to={`/calls/${encodeURIComponent(id)}`} size="xs">
      {operation}
    </Anchor>
  );
}
