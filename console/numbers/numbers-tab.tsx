import { Button, Group, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Phone, Plus } from 'lucide-react';
import { useMay } from '../app/session.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { money } from '../parts/format.ts';
import { LoadMore } from '../parts/load-more.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { numbersText as text } from '../text/numbers.ts';
import { InboundSummary } from './inbound-summary.tsx';
import { NumberActions } from './number-actions.tsx';
import { numbersQuery, type RentedNumber, trunksQuery } from './queries.ts';
import { RentPanel } from './rent-panel.tsx';

export function NumbersTab() {
  const may = useMay();
  const numbers = useInfiniteQuery(numbersQuery);
  // The trunks, which only admins see, contain the caller ID.
  const trunks = useQuery({ ...trunksQuery, enabled: may.administer });
  const [search, change] = useUrlSearch();
  const callerIds = (trunks.data ?? []).flatMap(({ default_caller_id: did }) => did ?? []);
  const rent = (
    <Button
      size="xs"
      leftSection={<Plus size={14} aria-hidden />}
      onClick={() => change({ rent: 'yes' }, { replace: false })}
    >
      {text.rent}
    </Button>
  );
  return (
    <Loaded query={numbers}>
      {(rows) => (
        <>
          {may.write && rows.length > 0 && (
            <Group justify="flex-end" mb="xs">
              {rent}
            </Group>
          )}
          <DataTable
            label={text.list}
            columns={may.write ? [...columnsFor(callerIds), actionsFor(callerIds)] : columnsFor(callerIds)}
            rows={rows}
            rowKey={({ e164 }) => e164}
            empty={<NoNumbers hasTrunk={(trunks.data?.length ?? 0) > 0} rent={rent} />}
          />
          <LoadMore list={numbers} />
          <RentPanel isOpen={may.write && search.rent !== undefined} onClose={() => change({ rent: undefined })} />
        </>
      )}
    </Loaded>
  );
}

function NoNumbers({ hasTrunk, rent }: { hasTrunk: boolean; rent: React.ReactNode }) {
  const may = useMay();
  const [, change] = useUrlSearch();
  const addTrunk = (
    <Button size="xs" onClick={() => change({ tab: 'trunks' }, { replace: false })}>
      {text.toTrunks}
    </Button>
  );
  const needsTrunk = may.administer && !hasTrunk;
  return (
    <EmptyState icon={Phone} title={text.emptyTitle} actions={needsTrunk ? addTrunk : may.write && rent}>
      {text.emptyHint} {needsTrunk && text.emptyNoTrunk}
    </EmptyState>
  );
}

function columnsFor(callerIds: readonly string[]): Column<RentedNumber>[] {
  return [
    {
      id: 'number',
      header: text.number,
      cell: ({ e164 }) => (
        <Stack gap={2} align="flex-start">
          <Text size="sm" fw={600} className="tabular unbroken">
            {e164}
          </Text>
          {callerIds.includes(e164) && <StatusBadge tone="active">{text.isCallerId}</StatusBadge>}
        </Stack>
      ),
    },
    { id: 'inbound', header: text.inbound, cell: ({ inbound }) => <InboundSummary rule={inbound} /> },
    {
      id: 'price',
      header: text.price,
      align: 'right',
      visibleFrom: 'sm',
      cell: ({ monthly_price_usd: price }) => <span className="tabular unbroken">{money(price)}</span>,
    },
    {
      id: 'rented',
      header: text.rented,
      visibleFrom: 'md',
      cell: ({ rented_at: at }) => at !== null && <Time at={at} show="day" />,
    },
  ];
}

function actionsFor(callerIds: readonly string[]): Column<RentedNumber> {
  return {
    id: 'actions',
    header: text.actions,
    align: 'right',
    cell: (number) => <NumberActions number={number} isCallerId={callerIds.includes(number.e164)} />,
  };
}
