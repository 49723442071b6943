import { Divider, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useSession } from '../app/session.ts';
import { Facts } from '../parts/facts.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { accountText as text } from '../text/account.ts';
import { PasswordForm } from './password-form.tsx';
import { SessionList } from './session-list.tsx';
import { WorkspaceList } from './workspace-list.tsx';

export function Page() {
  const { name, email, has_password: hasPassword } = useSession();
  return (
    <>
      <PageHeader title={text.title} />
      <Stack gap="xl" maw={860}>
        <Section title={text.profile}>
          <Facts
            columns="one"
            facts={[
              { label: text.name, value: name || text.noName },
              { label: text.email, value: email },
            ]}
          />
        </Section>
        <Section title={text.password} hint={hasPassword ? text.passwordSet : text.passwordMissing}>
          <PasswordForm />
        </Section>
        <Section title={text.sessions} hint={text.sessionsHint}>
          <SessionList />
        </Section>
        <Section title={text.workspaces}>
          <WorkspaceList />
        </Section>
      </Stack>
    </>
  );
}

function Section({ title, hint, children }: { title: string; hint?: string; children: ReactNode }) {
  return (
    <section>
      <Title order={2} size="h5">
        {title}
      </Title>
      <Divider my="xs" />
      {hint && (
        <Text size="sm" c="dimmed" mb="sm">
          {hint}
        </Text>
      )}
      {children}
    </section>
  );
}
