import { Anchor, Button, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Plus, Server } from 'lucide-react';
import { useMay } from '../app/session.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { DeniedState } from '../parts/denied-state.tsx';
import { count, money } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { trunkText } from '../text/trunks.ts';
import { type Trunk, trunksQuery } from './queries.ts';
import { TrunkDialog } from './trunk-dialog.tsx';
import { RegistrationHealth, TrunkHealth } from './trunk-health.tsx';
import { TrunkPanel } from './trunk-panel.tsx';

export function TrunksTab() {
  const may = useMay();
  if (!may.administer) return <DeniedState>{trunkText.denied}</DeniedState>;
  return <Trunks />;
}

/** Opens the trunk in the address (`?trunk=`) beside the list. */
function Trunks() {
  const trunks = useQuery(trunksQuery);
  const [search, change] = useUrlSearch();
  const [isAdding, adding] = useDisclosure(false);
  const open = (id: string | undefined) => change({ trunk: id }, { replace: false });
  const add = (
    <Button size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={adding.open}>
      {trunkText.add}
    </Button>
  );
  return (
    <>
      <Loaded query={trunks}>
        {(list) => (
          <>
            {list.length > 0 && (
              <Group justify="flex-end" mb="xs">
                {add}
              </Group>
            )}
            <DataTable
              label={trunkText.list}
              columns={COLUMNS}
              rows={list}
              rowKey={({ id }) => id}
              onOpen={({ id }) => open(id)}
              empty={
                <EmptyState icon={Server} title={trunkText.emptyTitle} actions={add}>
                  {trunkText.emptyHint}
                </EmptyState>
              }
            />
            <TrunkPanel trunks={list} id={search.trunk} onClose={() => change({ trunk: undefined })} />
          </>
        )}
      </Loaded>
      <TrunkDialog isOpen={isAdding} onClose={adding.close} onSaved={({ id }) => open(id)} />
    </>
  );
}

const COLUMNS: readonly Column<Trunk>[] = [
  {
    id: 'name',
    header: trunkText.name,
    cell: ({ id, name }) => (
      <Anchor
        component={Link}
        to="/numbers"
        search={{ tab: 'trunks', trunk: id } as never}
        size="sm"
        fw={600}
        onClick={(event) => event.stopPropagation()}
      >
        {name}
      </Anchor>
    ),
  },
  { id: 'health', header: trunkText.health, cell: (trunk) => <TrunkHealth trunk={trunk} /> },
  {
    id: 'registration',
    header: trunkText.registration,
    visibleFrom: 'md',
    cell: (trunk) => <RegistrationHealth trunk={trunk} />,
  },
  {
    id: 'carrier',
    header: trunkText.carrier,
    visibleFrom: 'sm',
    cell: ({ sip_uri: uri, transport }) => (
      <Text size="sm" ff="monospace">
        {uri} · {transport.toUpperCase()}
      </Text>
    ),
  },
  { id: 'numbers', header: trunkText.numbers, align: 'right', cell: ({ numbers }) => count(numbers.length) },
  {
    id: 'channels',
    header: trunkText.channels,
    align: 'right',
    visibleFrom: 'md',
    cell: ({ channels }) => count(channels),
  },
  {
    id: 'price',
    header: trunkText.price,
    align: 'right',
    visibleFrom: 'sm',
    cell: ({ price_per_minute_usd: price }) => <span className="tabular unbroken">{money(price)}</span>,
  },
];
