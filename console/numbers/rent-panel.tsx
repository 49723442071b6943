import { Group, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Search } from 'lucide-react';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { money } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone } from '../parts/notify.ts';
import { SidePanel } from '../parts/side-panel.tsx';
import { EmptyState } from '../parts/states.tsx';
import { numbersText, rentText as text } from '../text/numbers.ts';
import { availableQuery, type RentedNumber, refreshNumbers } from './queries.ts';

const TYPING_MS = 250;
const PATTERN = /^\+?[0-9*]{1,15}$/;

export function RentPanel({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <SidePanel title={text.title} isOpen={isOpen} onClose={onClose}>
      <Available />
    </SidePanel>
  );
}

function Available() {
  const [typed, setTyped] = useState('');
  const [pattern] = useDebouncedValue(typed.replaceAll(/[\s().-]/g, ''), TYPING_MS);
  const isUsable = pattern === '' || PATTERN.test(pattern);
  const available = useQuery({ ...availableQuery(isUsable ? pattern : ''), placeholderData: keepPreviousData });
  return (
    <>
      <TextInput
        label={text.search}
        description={text.searchHint}
        error={!isUsable && text.searchFormat}
        leftSection={<Search size={16} aria-hidden />}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        inputMode="tel"
        data-autofocus
      />
      <Loaded query={available}>
        {({ numbers }) => (
          <DataTable
            label={text.list}
            rows={numbers}
            rowKey={({ e164 }) => e164}
            empty={<EmptyState title={pattern === '' ? text.none : text.nothing} />}
            columns={[
              {
                id: 'number',
                header: numbersText.number,
                cell: ({ e164 }) => (
                  <Text size="sm" className="tabular">
                    {e164}
                  </Text>
                ),
              },
              {
                id: 'price',
                header: numbersText.price,
                align: 'right',
                cell: ({ monthly_price_usd: price }) => <span className="tabular unbroken">{money(price)}</span>,
              },
              { id: 'rent', header: numbersText.actions, align: 'right', cell: (number) => <Rent number={number} /> },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function Rent({ number: { e164, monthly_price_usd: price } }: { number: RentedNumber }) {
  const rent = async () => {
    await dataOf(api.POST('/dialer/numbers', { body: { e164 } }));
    notifyDone(text.rented(e164));
    await refreshNumbers();
  };
  return (
    <Group justify="flex-end">
      <ConfirmButton
        size="compact-xs"
        variant="light"
        color="blue"
        aria-label={`${text.rent}: ${e164}`}
        title={text.confirmTitle(e164)}
        message={price > 0 ? text.message(money(price)) : text.free}
        confirmLabel={price > 0 ? text.confirm(money(price)) : text.confirmFree}
        onConfirm={rent}
      >
        {text.rent}
      </ConfirmButton>
    </Group>
  );
}
