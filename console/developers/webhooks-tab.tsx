import { Anchor, Button, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Plus, Webhook as WebhookIcon } from 'lucide-react';
import { useMay } from '../app/session.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { EmptyState } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { webhooksText as text } from '../text/developers.ts';
import { type Webhook, webhooksQuery } from './queries.ts';
import { WebhookDialog } from './webhook-dialog.tsx';
import { WebhookPanel } from './webhook-panel.tsx';
import { WebhookStatus } from './webhook-status.tsx';

/** Opens the webhook in the address (`?webhook=`) beside the list. */
export function WebhooksTab() {
  const webhooks = useQuery(webhooksQuery);
  const may = useMay();
  const [search, change] = useUrlSearch();
  const [isAdding, adding] = useDisclosure(false);
  const open = (id: string) => change({ webhook: id }, { replace: false });
  const add = may.administer && (
    <Button size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={adding.open}>
      {text.add}
    </Button>
  );
  return (
    <>
      <Loaded query={webhooks}>
        {(list) => (
          <>
            {list.length > 0 && (
              <Group justify="flex-end" mb="xs">
                {add}
              </Group>
            )}
            <DataTable
              label={text.list}
              columns={COLUMNS}
              rows={list}
              rowKey={({ id }) => id}
              onOpen={({ id }) => open(id)}
              empty={
                <EmptyState icon={WebhookIcon} title={text.emptyTitle} actions={add}>
                  {text.emptyHint} {!may.administer && text.emptyReader}
                </EmptyState>
              }
            />
            <WebhookPanel
              webhooks={list}
              id={search.webhook}
              onClose={() => change({ webhook: undefined, delivery: undefined })}
            />
          </>
        )}
      </Loaded>
      <WebhookDialog isOpen={isAdding} onClose={adding.close} onSaved={({ id }) => open(id)} />
    </>
  );
}

const COLUMNS: readonly Column<Webhook>[] = [
  {
    id: 'url',
    header: text.url,
    cell: ({ id, url }) => (
      <Anchor
        component={Link}
        to="/developers"
        search={{ tab: 'webhooks', webhook: id } as never}
        size="sm"
        fw={600}
        onClick={(event) => event.stopPropagation()}
      >
        {url}
      </Anchor>
    ),
  },
  { id: 'status', header: text.status, cell: (webhook) => <WebhookStatus webhook={webhook} /> },
  { id: 'events', header: text.events, visibleFrom: 'sm', cell: ({ events }) => text.eventCount(events.length) },
  { id: 'created', header: text.created, visibleFrom: 'md', cell: ({ created_at: at }) => <Time at={at} show="day" /> },
];
