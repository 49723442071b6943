import { Anchor, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Disc, PhoneIncoming } from 'lucide-react';
import { memo } from 'react';
import { useMay } from '../app/session.ts';
import { CallActions } from '../call/actions/call-actions.tsx';
import { guestsOf, isTalking } from '../call/call-data.ts';
import { CallStateBadge } from '../call/call-state.tsx';
import { endpointName, partyName } from '../call/party.tsx';
import { callEventsQuery } from '../call/queries.ts';
import { transferTargetOf } from '../call/transfers.ts';
import { useServerNow } from '../parts/clock.ts';
import { duration, money } from '../parts/format.ts';
import { legStateText, roleText } from '../text/call-words.ts';
import { liveText } from '../text/live.ts';
import type { LiveCall } from './live-data.ts';
import type { LiveEntry } from './live-state.ts';
import { useLiveEntry } from './live-store.ts';
import { PartyLine } from './party-line.tsx';
import { SpokenWords } from './spoken-words.tsx';
import { SuperviseButtons } from './supervise-buttons.tsx';

/** One live call. Renders only when this call changes. */
export const LiveRow = memo(function LiveRow({ callId }: { callId: string }) {
  const entry = useLiveEntry(callId);
  const transferTarget = useTransferTarget(entry);
  const may = useMay();
  if (entry === undefined) return null;
  const { call } = entry;
  const parties = `${partyName(call, 'agent')}, ${partyName(call, 'customer')}`;
  return (
    <li className="live-row" data-state={call.state} aria-label={parties}>
      <div className="live-head">
        <div className="live-time tabular">
          <RunningTime call={call} />
        </div>
        <CallStateBadge call={call} />
        <Text size="xs" c="dimmed" className="tabular" mt={2} title={liveText.cost}>
          <RunningCost call={call} />
        </Text>
      </div>
      <div>
        <PartyLine entry={entry} party="agent" mayControl={may.write} />
        <PartyLine entry={entry} party="customer" mayControl={may.write} />
        <Guests call={call} />
      </div>
      <div className="live-words">
        <SpokenWords entry={entry} />
      </div>
      <div className="live-actions">
        <SuperviseButtons call={call} />
        <CallActions call={call} transferTarget={transferTarget} />
        <Group gap={8}>
          {call.direction === 'inbound' && <PhoneIncoming size={14} aria-label={liveText.inbound} />}
          {call.recording_id !== null && <Disc size={14} aria-label={liveText.recording} />}
          <Anchor component={Link} to={`/calls/${call.call_id}`} size="xs" aria-label={liveText.detailsOf(parties)}>
            {liveText.details}
          </Anchor>
        </Group>
      </div>
    </li>
  );
});

/** Leg of a transfer's target. A snapshot does not name it, so the call's events do. */
function useTransferTarget(entry: LiveEntry | undefined): string | null {
  const isUnknown = entry?.transferTarget === undefined && entry?.call.legs.some(isDialedParty) === true;
  const { data: events = [] } = useQuery({
    ...callEventsQuery(entry?.call.call_id ?? ''),
    enabled: isUnknown,
    staleTime: 0,
  });
  return isUnknown ? transferTargetOf(events) : (entry?.transferTarget ?? null);
}

/** The target of a transfer, or another party. */
function isDialedParty({ role, state }: LiveCall['legs'][number]): boolean {
  return role === 'party' && state !== 'ended';
}

/** Talk time of a bridged call, else the time since it was placed. */
function RunningTime({ call }: { call: LiveCall }) {
  const nowMs = useServerNow();
  const isCounted = isTalking(call) && call.answer_time !== null;
  const since = isCounted ? call.answer_time! : call.created_at;
  return (
    <span role="timer" aria-label={isCounted ? liveText.talkTime : liveText.ringTime}>
      {duration((nowMs - Date.parse(since)) / 1000)}
    </span>
  );
}

/** Talk is billed by the second; other charges arrive with the call's events. */
function RunningCost({ call }: { call: LiveCall }) {
  const nowMs = useServerNow();
  if (!isTalking(call) || call.answer_time === null) return money(call.cost_so_far_usd);
  const seconds = Math.max(0, (nowMs - Date.parse(call.answer_time)) / 1000);
  return money((call.price_per_minute_usd * seconds) / 60 + (call.speech_cost_usd ?? 0));
}

function Guests({ call }: { call: LiveCall }) {
  return guestsOf(call).map(({ leg_id: id, role, mode, state, endpoint }) => (
    <Text key={id} size="xs" c="dimmed">
      {mode !== null && state === 'answered'
        ? liveText.supervised[mode]
        : `${roleText[role]} ${endpointName(endpoint)}: ${legStateText[state]}`}
    </Text>
  ));
}
