import { Anchor, Group, NativeSelect, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useUrlSearch } from '../app/url-search.ts';
import { DataTable } from '../parts/data-table.tsx';
import { DayBars } from '../parts/day-bars.tsx';
import { count, money } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { serviceText, usageText as text } from '../text/wallet.ts';
import { type UsageGroup, type UsageGrouping, usageQuery } from './queries.ts';

const PERIODS = [7, 30, 90, 365];
const DEFAULT_DAYS = 30;

/** The period (`?days=`) is in the address. */
export function UsageTab() {
  const [search, change] = useUrlSearch();
  const days = PERIODS.find((each) => String(each) === search.days) ?? DEFAULT_DAYS;
  const byDay = useQuery(usageQuery(days, 'day'));
  return (
    <Stack>
      <Group>
        <NativeSelect
          size="xs"
          aria-label={text.period}
          value={String(days)}
          onChange={(event) => {
            const { value } = event.currentTarget;
            change({ days: value === String(DEFAULT_DAYS) ? undefined : value });
          }}
          data={PERIODS.map((each) => ({ value: String(each), label: text.lastDays(each) }))}
        />
      </Group>
      <Loaded query={byDay}>
        {({ groups, total }) =>
          total.count === 0 && total.refunded === 0 ? (
            <EmptyState title={text.emptyTitle}>{text.emptyHint}</EmptyState>
          ) : (
            <>
              <Part title={text.byDay}>
                <Group gap="lg" mb="xs">
                  <Text fw={600} className="tabular">
                    {text.spent(money(total.amount))}
                  </Text>
                  <Text c="dimmed" size="sm">
                    {text.charges(count(total.count))}
                  </Text>
                  {total.refunded > 0 && (
                    <Text c="dimmed" size="sm">
                      {text.refunded(money(total.refunded))}
                    </Text>
                  )}
                </Group>
                <DailyUsage days={groups} />
              </Part>
              <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
                <Groups days={days} by="product" title={text.byProduct} column={text.product} />
                <Groups days={days} by="api_key" title={text.byKey} column={text.key} />
              </SimpleGrid>
            </>
          )
        }
      </Loaded>
    </Stack>
  );
}

/** Days are in UTC, so that their names do not depend on the zone of the viewer. */
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });

function DailyUsage({ days }: { days: readonly UsageGroup[] }) {
  const bars = days.map(({ key, amount }) => {
    const name = DAY.format(new Date(key!));
    return { key: key!, name, value: amount, hint: text.bar(name, money(amount)) };
  });
  return <DayBars bars={bars} label={(most) => text.chart(days.length, money(most))} />;
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      {children}
    </section>
  );
}

interface GroupsProps {
  days: number;
  by: Exclude<UsageGrouping, 'day'>;
  title: string;
  column: string;
}

function Groups({ days, by, title, column }: GroupsProps) {
  const usage = useQuery(usageQuery(days, by));
  return (
    <Part title={title}>
      <Loaded query={usage}>
        {({ groups }) => (
          <DataTable
            label={title}
            rows={groups}
            rowKey={({ key }) => key ?? ''}
            columns={[
              { id: 'group', header: column, cell: (group) => <GroupName by={by} group={group} /> },
              {
                id: 'count',
                header: text.count,
                align: 'right',
                visibleFrom: 'xs',
                cell: (group) => <span className="tabular">{count(group.count)}</span>,
              },
              {
                id: 'amount',
                header: text.amount,
                align: 'right',
                cell: ({ amount }) => <span className="tabular unbroken">{money(amount)}</span>,
              },
            ]}
          />
        )}
      </Loaded>
    </Part>
  );
}

/** Links to the group's entries in the ledger. */
function GroupName({ by, group: { key, name } }: { by: GroupsProps['by']; group: UsageGroup }) {
  if (key === null) return text.noKey;
  const label = by === 'product' ? (serviceText[key as keyof typeof serviceText] ?? key) : (name ?? key);
  const filter = by === 'product' ? { service: key } : { key };
  return (
    <Anchor component={Link} to="/wallet" search={{ tab: 'ledger', ...filter } as never} size="sm">
      {label}
    </Anchor>
  );
}
