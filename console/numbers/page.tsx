import { PageHeader } from '../parts/page-header.tsx';
import { UrlTabs } from '../parts/url-tabs.tsx';
import { numbersText } from '../text/numbers.ts';
import { trunkText } from '../text/trunks.ts';
import { DoNotCallTab } from './do-not-call-tab.tsx';
import { NumbersTab } from './numbers-tab.tsx';
import { RulesTab } from './rules-tab.tsx';
import { TrunksTab } from './trunks-tab.tsx';

const TABS = [
  { id: 'numbers', label: numbersText.numbers, content: () => <NumbersTab /> },
  { id: 'trunks', label: trunkText.tab, content: () => <TrunksTab /> },
  { id: 'rules', label: numbersText.rules, content: () => <RulesTab /> },
  { id: 'do-not-call', label: numbersText.doNotCall, content: () => <DoNotCallTab /> },
];

export function Page() {
  return (
    <>
      <PageHeader title={numbersText.title} />
      <UrlTabs tabs={TABS} label={numbersText.tabs} />
    </>
  );
}
