import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Plus } from 'lucide-react';
import { api, dataOf } from '../app/api.ts';
import { type Membership, useSession } from '../app/session.ts';
import { switchWorkspace } from '../app/switch-workspace.ts';
import { currentWorkspaceId } from '../app/workspace.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { StatusBadge } from '../parts/status-badge.tsx';
import { accountText as text } from '../text/account.ts';
import { peopleText } from '../text/people.ts';

export function WorkspaceList() {
  const { workspaces } = useSession();
  const [isCreating, creating] = useDisclosure(false);
  const create = async ({ name }: Record<string, string>) => {
    const created = await dataOf(api.POST('/workspaces', { body: { name: name!.trim() } }));
    await switchWorkspace(created.id);
    notifyDone(text.created(created.name));
  };
  return (
    <Stack gap="sm">
      <DataTable label={text.workspaces} columns={COLUMNS} rows={workspaces} rowKey={({ id }) => id} />
      <Group>
        <Button size="xs" variant="default" leftSection={<Plus size={14} aria-hidden />} onClick={creating.open}>
          {text.create}
        </Button>
      </Group>
      <FormDialog
        title={text.create}
        submitLabel={text.createSubmit}
        isOpen={isCreating}
        onClose={creating.close}
        onSubmit={create}
      >
        <Text size="sm" c="dimmed">
          {text.createHint}
        </Text>
        <TextInput name="name" label={text.workspaceName} maxLength={100} autoComplete="off" required data-autofocus />
      </FormDialog>
    </Stack>
  );
}

const COLUMNS: readonly Column<Membership>[] = [
  {
    id: 'name',
    header: text.workspaceName,
    cell: ({ name }) => (
      <Text size="sm" fw={600}>
        {name}
      </Text>
    ),
  },
  { id: 'role', header: text.role, cell: ({ role }) => <span className="unbroken">{peopleText.roles[role]}</span> },
  { id: 'plan', header: text.plan, visibleFrom: 'sm', cell: ({ plan }) => plan },
  {
    id: 'actions',
    header: text.actions,
    align: 'right',
    cell: ({ id, name }) =>
      id === currentWorkspaceId() ? (
        <StatusBadge tone="good">{text.isOpen}</StatusBadge>
      ) : (
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => void switchWorkspace(id)}
          aria-label={`${text.open} ${name}`}
        >
          {text.open}
        </Button>
      ),
  },
];
