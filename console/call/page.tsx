import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { ApiError } from '../app/api-error.ts';
import { useLiveEvents } from '../app/live-events.ts';
import { useMay } from '../app/session.ts';
import { urlOf } from '../app/url-of.ts';
import { ErrorState, LoadingState, NotFoundState } from '../parts/states.tsx';
import { type Tab, UrlTabs } from '../parts/url-tabs.tsx';
import { callText } from '../text/call.ts';
import { EVENT_TEXT } from '../text/call-words.ts';
import type { Call, CallEvent } from './call-data.ts';
import { DeliveriesTab } from './callbacks/deliveries-tab.tsx';
import { CallHeader } from './header.tsx';
import { EvaluationsTab } from './judge/evaluations-tab.tsx';
import { LedgerTab } from './money/ledger-tab.tsx';
import { isTerminal } from './overview/lanes.ts';
import { Overview } from './overview/overview.tsx';
import { QualityTab } from './quality/quality-tab.tsx';
import { callEventsQuery, callQuery, takeEvent } from './queries.ts';
import { RecordingTab } from './recording/recording-tab.tsx';
import { SipTab } from './sip/sip-tab.tsx';
import { transferTargetOf } from './transfers.ts';

export function Page() {
  const { callId } = useParams({ from: '/signed-in/calls/$callId' });
  const query = useQuery(callQuery(callId));
  if (query.data) return <CallPage key={query.data.call_id} call={query.data} />;
  if (query.error instanceof ApiError && query.error.status === 404) return <NotFoundState />;
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return <LoadingState />;
}

function CallPage({ call }: { call: Call }) {
  const { call_id: id } = call;
  useCallStream(call);
  const events = useQuery({ ...callEventsQuery(id), enabled: !call.call_done });
  const transferTarget = call.call_done ? null : transferTargetOf(events.data ?? []);
  return (
    <>
      <CallHeader call={call} transferTarget={transferTarget} />
      <UrlTabs label={callText.tabs.label} tabs={useTabs(call)} />
    </>
  );
}

/** Omits tabs that the role may not read. */
function useTabs(call: Call): Tab[] {
  const { administer, own } = useMay();
  const { tabs } = callText;
  return [
    { id: 'overview', label: tabs.overview, content: () => <Overview call={call} /> },
    { id: 'recording', label: tabs.recording, content: () => <RecordingTab call={call} /> },
    { id: 'quality', label: tabs.quality, content: () => <QualityTab call={call} /> },
    ...(administer ? [{ id: 'sip', label: tabs.sip, content: () => <SipTab call={call} /> }] : []),
    { id: 'callbacks', label: tabs.callbacks, content: () => <DeliveriesTab call={call} /> },
    { id: 'judge', label: tabs.judge, content: () => <EvaluationsTab call={call} /> },
    ...(own ? [{ id: 'ledger', label: tabs.ledger, content: () => <LedgerTab call={call} /> }] : []),
  ];
}

/** Follows a live call. The server closes the stream after the last event; that is not a connection loss. */
function useCallStream({ call_id: id, call_done: isDone }: Call): void {
  const [isOver, setIsOver] = useState(false);
  const listeners = useMemo(() => {
    const take = (data: unknown) => {
      const event = data as CallEvent;
      takeEvent(id, event);
      if (isTerminal(event)) setIsOver(true);
    };
    return Object.fromEntries(EVENT_NAMES.map((name) => [name, take]));
  }, [id]);
  const isFollowed = !isDone && !isOver;
  useLiveEvents(isFollowed ? urlOf(`/dialer/click2call/${encodeURIComponent(id)}/stream`) : null, listeners);
}

const EVENT_NAMES = Object.keys(EVENT_TEXT);
