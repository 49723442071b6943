import { Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useUrlSearch } from '../app/url-search.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Filters } from '../parts/filters.tsx';
import { money } from '../parts/format.ts';
import { LoadMore } from '../parts/load-more.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { ledgerText, paymentsText as text } from '../text/wallet.ts';
import { ExportButton } from './export-button.tsx';
import { paymentFilters } from './filters.ts';
import { type Payment, paymentsQuery } from './queries.ts';

export function PaymentsTab() {
  const [search] = useUrlSearch();
  const filters = paymentFilters(search);
  const payments = useInfiniteQuery(paymentsQuery(filters));
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <Filters
        choices={[
          { name: 'type', label: text.type, all: text.allTypes, labels: text.types },
          { name: 'paid', label: ledgerText.status, all: ledgerText.allStatuses, labels: text.statuses },
        ]}
      >
        <ExportButton query={{ ...filters, type: 'transactions' }} />
      </Filters>
      <Loaded query={payments}>
        {(rows) => (
          <>
            <DataTable
              label={text.list}
              columns={COLUMNS}
              rows={rows}
              rowKey={({ hash_id: id }) => id}
              empty={
                <EmptyState title={isFiltered ? ledgerText.noMatch : text.emptyTitle}>
                  {!isFiltered && text.emptyHint}
                </EmptyState>
              }
            />
            <LoadMore list={payments} />
          </>
        )}
      </Loaded>
    </>
  );
}

const TONES: Record<Payment['status'], Tone> = { succeeded: 'good', pending: 'active', failed: 'bad' };

const COLUMNS: readonly Column<Payment>[] = [
  { id: 'time', header: ledgerText.time, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    id: 'type',
    header: text.type,
    cell: ({ payment_type: type }) => <span className="words">{text.types[type]}</span>,
  },
  {
    id: 'description',
    header: text.description,
    visibleFrom: 'sm',
    cell: ({ description }) => (
      <Text size="sm" lineClamp={2}>
        {description}
      </Text>
    ),
  },
  {
    id: 'status',
    header: ledgerText.status,
    cell: ({ status }) => <StatusBadge tone={TONES[status]}>{text.statuses[status]}</StatusBadge>,
  },
  {
    id: 'amount',
    header: text.amount,
    align: 'right',
    cell: ({ amount, currency }) => (
      <span className="tabular unbroken">{currency === 'USD' ? money(amount) : `${amount} ${currency}`}</span>
    ),
  },
  {
    id: 'balance',
    header: ledgerText.balanceAfter,
    align: 'right',
    visibleFrom: 'md',
    cell: ({ balance_after: after }) => <span className="tabular unbroken">{money(after)}</span>,
  },
];
