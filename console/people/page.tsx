import { Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { UserPlus } from 'lucide-react';
import { useState } from 'react';
import { useMay } from '../app/session.ts';
import { DeniedState } from '../parts/denied-state.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { SecretDialog } from '../parts/secret-dialog.tsx';
import { UrlTabs } from '../parts/url-tabs.tsx';
import { invitationsText, membersText, peopleText as text } from '../text/people.ts';
import { InvitationsTab } from './invitations-tab.tsx';
import { InviteDialog, type Invited } from './invite-dialog.tsx';
import { MembersTab } from './members-tab.tsx';

export function Page() {
  const may = useMay();
  if (!may.administer) {
    return (
      <>
        <PageHeader title={text.title} />
        <DeniedState>{text.denied}</DeniedState>
      </>
    );
  }
  return <People />;
}

function People() {
  const [isInviting, inviting] = useDisclosure(false);
  const [invited, setInvited] = useState<Invited | null>(null);
  const tabs = [
    { id: 'members', label: text.members, content: () => <MembersTab /> },
    { id: 'invitations', label: text.invitations, content: () => <InvitationsTab /> },
  ];
  return (
    <>
      <PageHeader title={text.title}>
        <Button size="xs" leftSection={<UserPlus size={14} aria-hidden />} onClick={inviting.open}>
          {membersText.invite}
        </Button>
      </PageHeader>
      <UrlTabs tabs={tabs} label={text.tabs} />
      <InviteDialog isOpen={isInviting} onClose={inviting.close} onInvited={setInvited} />
      <SecretDialog title={invitationsText.linkTitle} secret={invited?.link ?? null} onClose={() => setInvited(null)}>
        {invited && invitationsText.linkHint(invited.email)}
      </SecretDialog>
    </>
  );
}
