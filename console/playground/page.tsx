import './playground.css';
import { type ComponentType, lazy, Suspense } from 'react';
import { patiently } from '../app/load.ts';
import { PageHeader } from '../parts/page-header.tsx';
import { LoadingState } from '../parts/states.tsx';
import { UrlTabs } from '../parts/url-tabs.tsx';
import { playgroundText } from '../text/playground.ts';

const TABS = [
  tab('live', async () => (await import('./live/live-tab.tsx')).LiveTab),
  tab('speech', async () => (await import('./speech/speech-tab.tsx')).SpeechTab),
  tab('chat', async () => (await import('./chat/chat-tab.tsx')).ChatTab),
  tab('correction', async () => (await import('./correction/correction-tab.tsx')).CorrectionTab),
  tab('memory', async () => (await import('./memory/memory-tab.tsx')).MemoryTab),
  tab('judge', async () => (await import('./judge/judge-tab.tsx')).JudgeTab),
];

export function Page() {
  return (
    <>
      <PageHeader title={playgroundText.title} description={playgroundText.description} />
      <UrlTabs label={playgroundText.tabs} tabs={TABS} />
    </>
  );
}

/** Loads a tab's code when it is first shown. */
function tab(id: 'live' | 'speech' | 'chat' | 'correction' | 'memory' | 'judge', load: () => Promise<ComponentType>) {
  const Content = lazy(async () => ({ default: await patiently(load) }));
  const content = () => (
    <Suspense fallback={<LoadingState />}>
      <Content />
    </Suspense>
  );
  return { id, label: playgroundText[id], content };
}
