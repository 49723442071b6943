import { Text } from '@mantine/core';
import { useMay } from '../../app/session.ts';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { percent } from '../../parts/format.ts';
import { StatusBadge, type Tone } from '../../parts/status-badge.tsx';
import { overviewText } from '../../text/call.ts';
import { causeText, legStateText, partyText, roleText } from '../../text/call-words.ts';
import { LegControls } from '../actions/leg-controls.tsx';
import { type Call, isTalking, type Leg } from '../call-data.ts';
import { endpointName } from '../party.tsx';

const TONES: Record<Leg['state'], Tone> = {
  dialing: 'active',
  ringing: 'active',
  answered: 'good',
  held: 'warning',
  ended: 'neutral',
};

/** The parties of a call with their media statistics, and controls while it is live. */
export function LegTable({ call }: { call: Call }) {
  const may = useMay();
  const controls: Column<Leg>[] =
    may.write && isTalking(call)
      ? [
          {
            id: 'controls',
            header: overviewText.columns.controls,
            align: 'right',
            cell: (leg) => <LegControls callId={call.call_id} leg={leg} />,
          },
        ]
      : [];
  return (
    <DataTable
      label={overviewText.parties}
      columns={[...COLUMNS, ...controls]}
      rows={call.legs}
      rowKey={({ leg_id: id }) => id}
    />
  );
}

const COLUMNS: readonly Column<Leg>[] = [
  {
    id: 'party',
    header: overviewText.columns.party,
    cell: ({ role, endpoint }) => (
      <>
        <Text size="sm">{roleText[role]}</Text>
        <Text size="xs" c="dimmed" className="tabular">
          {endpointName(endpoint)}
        </Text>
      </>
    ),
  },
  {
    id: 'state',
    header: overviewText.columns.state,
    cell: ({ state, muted, hangup_cause: cause }) => (
      <>
        <StatusBadge tone={TONES[state]}>{legStateText[state]}</StatusBadge>
        {muted && (
          <Text size="xs" c="dimmed">
            {partyText.muted}
          </Text>
        )}
        {cause && (
          <Text size="xs" c="dimmed">
            {causeText(cause)}
          </Text>
        )}
      </>
    ),
  },
  { id: 'codec', header: overviewText.columns.codec, cell: ({ quality }) => quality?.codec, visibleFrom: 'sm' },
  {
    id: 'loss',
    header: overviewText.columns.loss,
    align: 'right',
    visibleFrom: 'sm',
    cell: ({ quality }) => quality && <span className="tabular">{percent(lossOf(quality))}</span>,
  },
  {
    id: 'jitter',
    header: overviewText.columns.jitter,
    align: 'right',
    visibleFrom: 'sm',
    cell: ({ quality }) => quality && <span className="tabular">{overviewText.milliseconds(quality.jitter_ms)}</span>,
  },
  {
    id: 'mos',
    header: overviewText.columns.mos,
    align: 'right',
    cell: ({ quality }) => quality && <span className="tabular">{quality.mos?.toFixed(2)}</span>,
  },
  {
    id: 'encryption',
    header: overviewText.columns.encryption,
    visibleFrom: 'md',
    cell: ({ quality }) =>
      quality && (
        <span title={quality.encryption ?? undefined}>
          {quality.encryption === null ? overviewText.clear : overviewText.encrypted}
        </span>
      ),
  },
];

function lossOf({ packets_received: received, packets_lost: lost }: NonNullable<Leg['quality']>): number {
  return received + lost === 0 ? 0 : lost / (received + lost);
}
