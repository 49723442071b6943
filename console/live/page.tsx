import { Alert, Group, Stack } from '@mantine/core';
import { PhoneOff } from 'lucide-react';
import { useMemo } from 'react';
import { useMay } from '../app/session.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { PageHeader } from '../parts/page-header.tsx';
import { EmptyState, LoadingState } from '../parts/states.tsx';
import { liveText } from '../text/live.ts';
import { EndedCalls } from './ended-calls.tsx';
import { LiveRow } from './live-row.tsx';
import type { LiveEntry, LiveState } from './live-state.ts';
import { useLiveState } from './live-store.ts';
import { PlaceCallButton } from './place-call.tsx';
import { LIVE_FILTERS, liveFilterOf, StateFilter } from './state-filter.tsx';
import './live.css';

/** Current calls of the workspace. */
export function Page() {
  const state = useLiveState();
  const may = useMay();
  return (
    <>
      <PageHeader title={liveText.title} description={state.isReady ? liveText.now(state.calls.size) : undefined}>
        {may.write && <PlaceCallButton />}
      </PageHeader>
      {state.isReady ? <LiveCalls state={state} /> : <LoadingState />}
    </>
  );
}

function LiveCalls({ state: { calls, isTruncated, ended } }: { state: LiveState }) {
  const [search, change] = useUrlSearch();
  const filter = liveFilterOf(search.state);
  const entries = useMemo(() => inOrder([...calls.values()]), [calls]);
  const shown = entries.filter(LIVE_FILTERS[filter].includes);
  return (
    <Stack gap="sm">
      {calls.size > 0 && (
        <Group>
          <StateFilter
            entries={entries}
            value={filter}
            onChange={(state) => change({ state: state === 'all' ? undefined : state })}
          />
        </Group>
      )}
      {isTruncated && <Alert color="yellow">{liveText.truncated}</Alert>}
      {shown.length > 0 ? (
        <ul className="live-list" aria-label={liveText.calls}>
          {shown.map(({ call }) => (
            <LiveRow key={call.call_id} callId={call.call_id} />
          ))}
        </ul>
      ) : calls.size > 0 ? (
        <EmptyState title={liveText.emptyState}>{liveText.emptyStateHint}</EmptyState>
      ) : (
        <EmptyState icon={PhoneOff} title={liveText.emptyTitle}>
          {liveText.empty}
        </EmptyState>
      )}
      <EndedCalls calls={ended} />
    </Stack>
  );
}

const RANK: Record<string, number> = { bridged: 0, initiated: 1, pending: 2 };

/** Talks first, then dialing calls; newest first in each, so that rows stay in place. */
function inOrder(entries: LiveEntry[]): LiveEntry[] {
  return entries.sort(
    (a, b) =>
      (RANK[a.call.state] ?? 3) - (RANK[b.call.state] ?? 3) || b.call.created_at.localeCompare(a.call.created_at),
  );
}
