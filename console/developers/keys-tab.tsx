import { Button, Group, Stack, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { useMay, useSession } from '../app/session.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone } from '../parts/notify.ts';
import { SecretDialog } from '../parts/secret-dialog.tsx';
import { EmptyState } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { keysText as text } from '../text/developers.ts';
import { KeyDialog } from './key-dialog.tsx';
import { type ApiKey, allKeysQuery } from './queries.ts';
import { TryIt } from './try-it.tsx';

export function KeysTab() {
  const keys = useQuery(allKeysQuery);
  const may = useMay();
  const { id: userId } = useSession();
  const [isCreating, creating] = useDisclosure(false);
  const [secret, setSecret] = useState<string | null>(null);
  const mayDelete = (key: ApiKey) => may.administer || (may.write && key.created_by_user_id === userId);
  const create = may.write && (
    <Button size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={creating.open}>
      {text.create}
    </Button>
  );
  return (
    <Stack gap="lg">
      <Loaded query={keys}>
        {(list) => (
          <div>
            {list.length > 0 && (
              <Group justify="flex-end" mb="xs">
                {create}
              </Group>
            )}
            <DataTable
              label={text.list}
              rows={list}
              rowKey={({ id }) => id}
              columns={may.write ? [...COLUMNS, actionsFor(mayDelete)] : COLUMNS}
              empty={
                <EmptyState icon={KeyRound} title={text.emptyTitle} actions={create}>
                  {text.emptyHint} {!may.write && text.emptyViewer}
                </EmptyState>
              }
            />
          </div>
        )}
      </Loaded>
      <TryIt />
      <KeyDialog isOpen={isCreating} onClose={creating.close} onCreated={setSecret} />
      <SecretDialog title={text.secretTitle} secret={secret} onClose={() => setSecret(null)} />
    </Stack>
  );
}

const COLUMNS: readonly Column<ApiKey>[] = [
  {
    id: 'name',
    header: text.name,
    cell: ({ name }) => (
      <Text size="sm" fw={600}>
        {name}
      </Text>
    ),
  },
  {
    id: 'key',
    header: text.key,
    cell: ({ prefix, last4 }) => (
      <Text size="sm" ff="monospace">
        {prefix}…{last4}
      </Text>
    ),
  },
  { id: 'scopes', header: text.access, visibleFrom: 'sm', cell: ({ scopes }) => <Scopes scopes={scopes} /> },
  {
    id: 'used',
    header: text.lastUsed,
    visibleFrom: 'sm',
    cell: ({ last_used_at: at }) => (at === null ? text.never : <Time at={at} />),
  },
  { id: 'expires', header: text.expires, visibleFrom: 'md', cell: ({ expires_at: at }) => <Expiry at={at} /> },
  { id: 'created', header: text.created, visibleFrom: 'lg', cell: ({ created_at: at }) => <Time at={at} show="day" /> },
];

function Scopes({ scopes }: Pick<ApiKey, 'scopes'>) {
  if (scopes.length === 0) return text.everything;
  if (scopes.length <= 2) return scopes.join(', ');
  return (
    <Tooltip label={scopes.join(', ')} multiline maw={320}>
      <Text size="sm" component="span" tabIndex={0}>
        {text.count(scopes.length)}
      </Text>
    </Tooltip>
  );
}

function Expiry({ at }: { at: string | null }) {
  if (at === null) return text.never;
  if (Date.parse(at) <= Date.now()) return <StatusBadge tone="bad">{text.expired}</StatusBadge>;
  return <Time at={at} show="day" />;
}

function actionsFor(mayDelete: (key: ApiKey) => boolean): Column<ApiKey> {
  return {
    id: 'actions',
    header: text.actions,
    align: 'right',
    cell: (key) => mayDelete(key) && <DeleteKey apiKey={key} />,
  };
}

function DeleteKey({ apiKey: { id, name } }: { apiKey: ApiKey }) {
  const remove = async () => {
    await dataOf(api.DELETE('/developer/api/{id}', { params: { path: { id: String(id) } } }));
    notifyDone(text.deleted(name));
    await queryClient.invalidateQueries({ queryKey: allKeysQuery.queryKey });
  };
  return (
    <ConfirmButton
      size="compact-xs"
      aria-label={`${text.delete}: ${name}`}
      title={text.deleteTitle(name)}
      message={text.deleteMessage}
      confirmLabel={text.deleteConfirm}
      onConfirm={remove}
    >
      {text.delete}
    </ConfirmButton>
  );
}
