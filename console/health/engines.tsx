import { Text } from '@mantine/core';
import { DataTable } from '../parts/data-table.tsx';
import { count } from '../parts/format.ts';
import { StatusBadge } from '../parts/status-badge.tsx';
import { healthText as text } from '../text/health.ts';
import type { SystemHealth } from './queries.ts';
import { Section } from './section.tsx';

type Engine = SystemHealth['engines'][number];

export function Engines({ engines }: { engines: readonly Engine[] }) {
  return (
    <Section title={text.engines}>
      <DataTable
        label={text.engines}
        rows={engines}
        rowKey={({ engine, kind }) => `${kind} ${engine}`}
        columns={[
          { id: 'engine', header: text.engine, cell: (engine) => <Name engine={engine} /> },
          { id: 'status', header: text.status, cell: (engine) => <Status engine={engine} /> },
          { id: 'loaded', header: text.recognizers, cell: loadedOf },
          {
            id: 'speed',
            header: text.speed,
            cell: ({ real_time_factor: factor }) => (factor ? text.realTime(factor) : text.none),
          },
        ]}
      />
    </Section>
  );
}

function Name({ engine: { engine, kind, models, voices, problem } }: { engine: Engine }) {
  const parts = [text.kinds[kind], ...models, ...(voices === null ? [] : [text.voices(voices)])];
  return (
    <>
      <Text size="sm">{engine}</Text>
      <Text size="xs" c="dimmed">
        {parts.join(' · ')}
      </Text>
      {problem !== null && <Text size="xs">{problem}</Text>}
    </>
  );
}

function Status({ engine: { is_running: isRunning, problem } }: { engine: Engine }) {
  if (problem !== null) return <StatusBadge tone="bad">{text.unusable}</StatusBadge>;
  return isRunning ? (
    <StatusBadge tone="good">{text.running}</StatusBadge>
  ) : (
    <StatusBadge tone="bad">{text.stopped}</StatusBadge>
  );
}

function loadedOf({ loaded, busy }: Engine): string {
  return loaded === null ? text.none : text.busyOf(busy ?? 0, loaded);
}

export function LanguageModels({ models }: { models: SystemHealth['language_models'] }) {
  return (
    <Section title={text.languageModels}>
      {models.length === 0 && (
        <Text size="sm" c="dimmed">
          {text.noLanguageModels}
        </Text>
      )}
      <dl className="health-list">
        {models.map(({ id, context_tokens: tokens }) => (
          <div key={id}>
            <dt>{id}</dt>
            <dd>{tokens === null ? text.unknown : text.contextOf(count(tokens))}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
