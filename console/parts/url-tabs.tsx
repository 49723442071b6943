import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useUrlSearch } from '../app/url-search.ts';

export interface Tab {
  id: string;
  label: string;
  /** Rendered only while the tab is active. */
  content: () => ReactNode;
}

/** Tabs whose choice is in the address (`?tab=`). */
export function UrlTabs({ tabs, label }: { tabs: readonly Tab[]; label: string }) {
  const [search, change] = useUrlSearch();
  const shown = tabs.find(({ id }) => id === search.tab) ?? tabs[0]!;
  const show = (id: string | null) => change({ tab: id === tabs[0]!.id ? undefined : (id ?? undefined) });
  return (
    <Tabs value={shown.id} onChange={show} keepMounted={false}>
      <Tabs.List mb="md" aria-label={label}>
        {tabs.map(({ id, label: title }) => (
          <Tabs.Tab key={id} value={id}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ id, content }) => (
        <Tabs.Panel key={id} value={id}>
          {id === shown.id && content()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
