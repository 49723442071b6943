import { Text } from '@mantine/core';
import { DataTable } from '../parts/data-table.tsx';
import { count, percent } from '../parts/format.ts';
import { ShareBar } from '../parts/share-bar.tsx';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { Time } from '../parts/time.tsx';
import { healthText as text } from '../text/health.ts';
import type { SystemHealth } from './queries.ts';
import { Section } from './section.tsx';

type Node = SystemHealth['nodes'][number];

const TONES: Record<Node['state'], Tone> = { running: 'good', draining: 'warning', lost: 'bad', ended: 'neutral' };

export function Nodes({ nodes }: { nodes: readonly Node[] }) {
  return (
    <Section title={text.nodes}>
      <DataTable
        label={text.nodes}
        rows={nodes}
        rowKey={({ boot }) => boot}
        columns={[
          { id: 'name', header: text.node, cell: (node) => <Name node={node} /> },
          { id: 'state', header: text.status, cell: (node) => <State node={node} /> },
          { id: 'calls', header: text.calls, align: 'right', cell: ({ calls }) => count(calls) },
          {
            id: 'load',
            header: text.load,
            cell: ({ media_load: load }) => <ShareBar value={load} text={percent(load)} tone={toneOf(load)} />,
          },
          { id: 'lease', header: text.lease, cell: ({ lease_seconds_left: left }) => leaseOf(left) },
          { id: 'version', header: text.version, cell: ({ version }) => version ?? text.unknown },
          { id: 'started', header: text.started, cell: ({ started_at: at }) => <Time at={at} /> },
        ]}
      />
    </Section>
  );
}

const HIGH = 0.7;
const FULL = 0.95;

export function toneOf(load: number): 'warning' | 'bad' | undefined {
  if (load >= FULL) return 'bad';
  return load >= HIGH ? 'warning' : undefined;
}

function Name({ node: { name, is_this: isThis } }: { node: Node }) {
  return (
    <>
      {name}{' '}
      {isThis && (
        <Text span size="xs" c="dimmed">
          {text.thisNode}
        </Text>
      )}
    </>
  );
}

function State({ node: { state, taken_over_by: successor, can_place_calls: canPlace } }: { node: Node }) {
  const note = successor !== null ? text.takenOverBy(successor) : state === 'running' && !canPlace && text.cannotPlace;
  return (
    <>
      <StatusBadge tone={TONES[state]}>{text.states[state]}</StatusBadge>
      {note && (
        <Text size="xs" c="dimmed">
          {note}
        </Text>
      )}
    </>
  );
}

function leaseOf(secondsLeft: number): string {
  return secondsLeft > 0 ? text.leaseLeft(secondsLeft) : text.leaseOver(-secondsLeft);
}
