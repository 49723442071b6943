import { Text, VisuallyHidden } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { ArrowRight, Captions, Disc, PhoneIncoming } from 'lucide-react';
import { memo } from 'react';
import { type Call, totalCost } from '../call/call-data.ts';
import { CallStateBadge, endText } from '../call/call-state.tsx';
import { partyName } from '../call/party.tsx';
import { duration, money } from '../parts/format.ts';
import { Time } from '../parts/time.tsx';
import { callsText } from '../text/calls.ts';

export type ListedCall = Pick<
  Call,
  | 'call_id'
  | 'reference_id'
  | 'agent_number'
  | 'customer_number'
  | 'direction'
  | 'state'
  | 'terminal_event'
  | 'hangup_cause'
  | 'error_detail'
  | 'talk_seconds'
  | 'cost_usd'
  | 'legs_cost_usd'
  | 'speech_cost_usd'
  | 'recording_available'
  | 'transcribe_requested'
  | 'created_at'
  | 'legs'
>;

/** Cells of one call. Scrolling draws only the calls that come into view. */
export const CallCells = memo(function CallCells({ call }: { call: ListedCall }) {
  const agent = partyName(call, 'agent');
  const customer = partyName(call, 'customer');
  const cost = totalCost(call);
  return (
    <>
      <td data-column="state">
        <span title={endText(call) ?? undefined}>
          <CallStateBadge call={call} />
        </span>
      </td>
      <td data-column="time">
        <Time at={call.created_at} />
      </td>
      <td data-column="parties" className="call-parties tabular">
        <Link
          to="/calls/$callId"
          params={{ callId: call.call_id }}
          className="call-link"
          aria-label={callsText.open(`${agent} ${callsText.arrow} ${customer}`)}
        >
          {agent}
        </Link>
        <ArrowRight size={12} aria-hidden />
        <span>{customer}</span>
        {call.direction === 'inbound' && <Mark icon={PhoneIncoming} label={callsText.inbound} />}
        {call.recording_available && <Mark icon={Disc} label={callsText.recorded} />}
        {call.transcribe_requested && <Mark icon={Captions} label={callsText.transcribed} />}
      </td>
      <td data-column="talk" data-align="right" className="tabular">
        {call.talk_seconds === null ? <Dash /> : duration(call.talk_seconds)}
      </td>
      <td data-column="cost" data-align="right" className="tabular">
        {cost === null ? <Dash /> : money(cost)}
      </td>
      <td data-column="reference">
        <Text component="span" size="xs" c="dimmed" ff="monospace">
          {call.reference_id}
        </Text>
      </td>
    </>
  );
});

function Mark({ icon: Icon, label }: { icon: typeof Disc; label: string }) {
  return (
    <span title={label}>
      <Icon size={13} color="var(--mantine-color-dimmed)" aria-hidden />
      <VisuallyHidden>{label}</VisuallyHidden>
    </span>
  );
}

function Dash() {
  return (
    <Text component="span" c="dimmed" aria-hidden>
      –
    </Text>
  );
}
