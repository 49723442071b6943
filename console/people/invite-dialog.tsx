import { Alert, NativeSelect, TextInput } from '@mantine/core';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { type Role, useSession } from '../app/session.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { invitationsText as text } from '../text/people.ts';
import { invitationsQuery } from './queries.ts';
import { RoleField } from './role-field.tsx';

export interface Invited {
  email: string;
  /** Contains the invitation's token, which the server returns once. */
  link: string;
}

interface InviteDialogProps {
  isOpen: boolean;
  onClose: () => void;
  onInvited: (invited: Invited) => void;
}

export function InviteDialog({ isOpen, onClose, onInvited }: InviteDialogProps) {
  const { workspace, server } = useSession();
  const invite = async ({ email, role, hours }: Record<string, string>) => {
    const invitation = await dataOf(
      api.POST('/workspaces/{id}/invitations', {
        params: { path: { id: workspace.id } },
        body: { email: email!.trim(), role: role as Role, expires_in_hours: Number(hours) },
      }),
    );
    const link = `${location.origin}/console/join?token=${encodeURIComponent(invitation.token)}`;
    onInvited({ email: invitation.email, link });
    await queryClient.invalidateQueries({ queryKey: invitationsQuery(workspace.id).queryKey });
  };
  return (
    <FormDialog title={text.title} submitLabel={text.submit} isOpen={isOpen} onClose={onClose} onSubmit={invite}>
      {server.registration === 'closed' && <Alert color="yellow">{text.closed}</Alert>}
      <TextInput
        name="email"
        type="email"
        label={text.email}
        description={text.emailHint}
        maxLength={254}
        autoComplete="off"
        required
        data-autofocus
      />
      <RoleField current="member" />
      <NativeSelect
        name="hours"
        label={text.hours}
        defaultValue="72"
        data={Object.entries(text.hourChoices).map(([value, label]) => ({ value, label }))}
      />
    </FormDialog>
  );
}
