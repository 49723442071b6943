import { Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Plus } from 'lucide-react';
import { useMay } from '../app/session.ts';
import { DeniedState } from '../parts/denied-state.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { UrlTabs } from '../parts/url-tabs.tsx';
import { walletText as text } from '../text/wallet.ts';
import { Balance } from './balance.tsx';
import { LedgerTab } from './ledger-tab.tsx';
import { PaymentsTab } from './payments-tab.tsx';
import { PricesTab } from './prices-tab.tsx';
import { TopUpDialog } from './top-up-dialog.tsx';
import { UsageTab } from './usage-tab.tsx';

const TABS = [
  { id: 'usage', label: text.usage, content: () => <UsageTab /> },
  { id: 'ledger', label: text.ledger, content: () => <LedgerTab /> },
  { id: 'payments', label: text.payments, content: () => <PaymentsTab /> },
  { id: 'prices', label: text.prices, content: () => <PricesTab /> },
];

export function Page() {
  const may = useMay();
  const [isToppingUp, topUp] = useDisclosure(false);
  if (!may.own) {
    return (
      <>
        <PageHeader title={text.title} />
        <DeniedState>{text.denied}</DeniedState>
      </>
    );
  }
  return (
    <>
      <PageHeader title={text.title}>
        <Button size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={topUp.open}>
          {text.topUp}
        </Button>
      </PageHeader>
      <Balance />
      <UrlTabs tabs={TABS} label={text.tabs} />
      <TopUpDialog isOpen={isToppingUp} onClose={topUp.close} />
    </>
  );
}
