import { Button } from '@mantine/core';
import { BookOpen } from 'lucide-react';
import { PageHeader } from '../parts/page-header.tsx';
import { UrlTabs } from '../parts/url-tabs.tsx';
import { developersText as text } from '../text/developers.ts';
import { AuditTab } from './audit-tab.tsx';
import { KeysTab } from './keys-tab.tsx';
import { WebhooksTab } from './webhooks-tab.tsx';

const TABS = [
  { id: 'keys', label: text.keys, content: () => <KeysTab /> },
  { id: 'webhooks', label: text.webhooks, content: () => <WebhooksTab /> },
  { id: 'audit', label: text.audit, content: () => <AuditTab /> },
];

export function Page() {
  return (
    <>
      <PageHeader title={text.title}>
        <Button component="a" href="/docs" size="xs" variant="default" leftSection={<BookOpen size={14} aria-hidden />}>
          {text.reference}
        </Button>
      </PageHeader>
      <UrlTabs tabs={TABS} label={text.tabs} />
    </>
  );
}
