import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { DataTable } from '../parts/data-table.tsx';
import { money } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { serviceText, pricesText as text } from '../text/wallet.ts';
import { pricesQuery } from './queries.ts';

export function PricesTab() {
  const prices = useQuery(pricesQuery);
  return (
    <Loaded query={prices}>
      {(data) => (
        <Stack gap="sm" maw={640}>
          <DataTable
            label={text.list}
            rows={data.prices}
            rowKey={({ item }) => item}
            columns={[
              { id: 'item', header: text.item, cell: ({ item }) => serviceText[item] },
              {
                id: 'price',
                header: text.price,
                align: 'right',
                cell: ({ price_usd: usd = 0, percent, unit }) =>
                  percent === undefined ? text.perUnit(money(usd), unit) : text.surcharge(percent),
              },
              { id: 'source', header: text.source, visibleFrom: 'xs', cell: ({ set_for: by }) => text.sources[by] },
            ]}
          />
          <Text size="sm" c="dimmed">
            {text.intro} {text.change}
          </Text>
        </Stack>
      )}
    </Loaded>
  );
}
