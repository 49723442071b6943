import { Button, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { type Role, useMay, useSession } from '../app/session.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone } from '../parts/notify.ts';
import { StatusBadge } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { peopleText, membersText as text } from '../text/people.ts';
import { type Member, membersQuery } from './queries.ts';
import { RoleField } from './role-field.tsx';

export function MembersTab() {
  const { workspace } = useSession();
  const members = useQuery(membersQuery(workspace.id));
  return (
    <Loaded query={members}>
      {(list) => <DataTable label={text.list} columns={COLUMNS} rows={list} rowKey={({ user_id: id }) => id} />}
    </Loaded>
  );
}

const COLUMNS: readonly Column<Member>[] = [
  { id: 'name', header: text.name, cell: (member) => <Person {...member} /> },
  { id: 'role', header: text.role, cell: ({ role }) => <span className="unbroken">{peopleText.roles[role]}</span> },
  { id: 'since', header: text.since, visibleFrom: 'sm', cell: ({ created_at: at }) => <Time at={at} show="day" /> },
  { id: 'actions', header: text.actions, align: 'right', cell: (member) => <MemberActions member={member} /> },
];

function Person({ user_id: id, name, email }: Member) {
  const session = useSession();
  return (
    <Stack gap={0}>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {name || email}
        </Text>
        {id === session.id && <StatusBadge tone="neutral">{text.you}</StatusBadge>}
      </Group>
      {name && (
        <Text size="xs" c="dimmed">
          {email}
        </Text>
      )}
    </Stack>
  );
}

function MemberActions({ member: { user_id: userId, email, role } }: { member: Member }) {
  const { id: ownId, workspace } = useSession();
  const may = useMay();
  const [isChanging, changing] = useDisclosure(false);
  const isSelf = userId === ownId;
  // Only owners change owners.
  if (role === 'owner' && !may.own) return null;
  const path = { params: { path: { id: workspace.id, user_id: String(userId) } } };
  const refresh = () =>
    // A change of the user's own role affects the whole console.
    queryClient.invalidateQueries({ queryKey: isSelf ? ['session'] : membersQuery(workspace.id).queryKey });
  const change = async (fields: Record<string, string>) => {
    await dataOf(api.PATCH('/workspaces/{id}/members/{user_id}', { ...path, body: { role: fields.role as Role } }));
    await Promise.all([refresh(), queryClient.invalidateQueries({ queryKey: membersQuery(workspace.id).queryKey })]);
    notifyDone(text.changed(email));
  };
  const remove = async () => {
    await dataOf(api.DELETE('/workspaces/{id}/members/{user_id}', path));
    notifyDone(text.removed(email));
    await refresh();
  };
  return (
    <Group gap={6} justify="flex-end">
      <Button size="compact-xs" variant="default" onClick={changing.open} aria-label={`${text.change}: ${email}`}>
        {text.change}
      </Button>
      <ConfirmButton
        size="compact-xs"
        aria-label={`${text.remove}: ${email}`}
        title={isSelf ? text.leaveTitle : text.removeTitle(email)}
        message={text.removeMessage}
        confirmLabel={text.removeConfirm}
        onConfirm={remove}
      >
        {text.remove}
      </ConfirmButton>
      <FormDialog
        title={text.changeTitle(email)}
        submitLabel={text.changeSubmit}
        isOpen={isChanging}
        onClose={changing.close}
        onSubmit={change}
      >
        <RoleField current={role} />
        <Text size="sm" c="dimmed">
          {isSelf ? text.ownWarning : text.changeHint}
        </Text>
      </FormDialog>
    </Group>
  );
}
