import { useInfiniteQuery } from '@tanstack/react-query';
import { MailPlus } from 'lucide-react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { useSession } from '../app/session.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { LoadMore } from '../parts/load-more.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone } from '../parts/notify.ts';
import { EmptyState } from '../parts/states.tsx';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { peopleText, invitationsText as text } from '../text/people.ts';
import { type Invitation, invitationsQuery } from './queries.ts';

export function InvitationsTab() {
  const { workspace } = useSession();
  const invitations = useInfiniteQuery(invitationsQuery(workspace.id));
  return (
    <Loaded query={invitations}>
      {(rows) => (
        <>
          <DataTable
            label={text.list}
            columns={COLUMNS}
            rows={rows}
            rowKey={({ id }) => id}
            empty={
              <EmptyState icon={MailPlus} title={text.emptyTitle}>
                {text.emptyHint}
              </EmptyState>
            }
          />
          <LoadMore list={invitations} />
        </>
      )}
    </Loaded>
  );
}

const TONES: Record<Invitation['status'], Tone> = {
  pending: 'active',
  accepted: 'good',
  revoked: 'neutral',
  expired: 'warning',
};

const COLUMNS: readonly Column<Invitation>[] = [
  { id: 'email', header: text.email, cell: ({ email }) => email },
  {
    id: 'role',
    header: text.role,
    cell: ({ role }) => <span className="words">{role === null ? text.ownWorkspace : peopleText.roles[role]}</span>,
  },
  {
    id: 'status',
    header: text.status,
    cell: ({ status }) => <StatusBadge tone={TONES[status]}>{text.statuses[status]}</StatusBadge>,
  },
  { id: 'expires', header: text.expires, visibleFrom: 'sm', cell: ({ expires_at: at }) => <Time at={at} /> },
  {
    id: 'actions',
    header: text.actions,
    align: 'right',
    cell: (invitation) => invitation.status === 'pending' && <Revoke invitation={invitation} />,
  },
];

function Revoke({ invitation: { id, email } }: { invitation: Invitation }) {
  const { workspace } = useSession();
  const revoke = async () => {
    await dataOf(
      api.DELETE('/workspaces/{id}/invitations/{invitation_id}', {
        params: { path: { id: workspace.id, invitation_id: id } },
      }),
    );
    notifyDone(text.revoked(email));
    await queryClient.invalidateQueries({ queryKey: invitationsQuery(workspace.id).queryKey });
  };
  return (
    <ConfirmButton
      size="compact-xs"
      aria-label={`${text.revoke}: ${email}`}
      title={text.revokeTitle(email)}
      message={text.revokeMessage}
      confirmLabel={text.revokeConfirm}
      onConfirm={revoke}
    >
      {text.revoke}
    </ConfirmButton>
  );
}
