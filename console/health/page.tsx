import { Alert, Button, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX, RefreshCw, TriangleAlert } from 'lucide-react';
import { ApiError } from '../app/api-error.ts';
import { DeniedState } from '../parts/denied-state.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { Time } from '../parts/time.tsx';
import { healthText as text } from '../text/health.ts';
import { Checks } from './checks.tsx';
import { Downloads } from './downloads.tsx';
import { Engines, LanguageModels } from './engines.tsx';
import { Media } from './media.tsx';
import { Nodes } from './nodes.tsx';
import { healthQuery, readinessQuery, type SystemHealth } from './queries.ts';
import { Queues } from './queues.tsx';
import { ReadinessSection } from './readiness.tsx';
import { Section } from './section.tsx';
import './health.css';

export function Page() {
  const health = useQuery(healthQuery);
  const readiness = useQuery(readinessQuery);
  const refresh = () => void Promise.all([health.refetch(), readiness.refetch()]);
  const isDenied = health.error instanceof ApiError && health.error.status === 403;
  const checkedAt = health.data?.checked_at;
  return (
    <>
      <PageHeader
        title={text.title}
        description={
          checkedAt && (
            <>
              {text.checkedAt} <Time at={checkedAt} />
            </>
          )
        }
      >
        <Button
          variant="default"
          leftSection={<RefreshCw size={16} aria-hidden />}
          loading={health.isRefetching || readiness.isRefetching}
          onClick={refresh}
        >
          {text.refresh}
        </Button>
      </PageHeader>
      <Stack gap="md">
        {isDenied ? (
          <DeniedState>{text.denied}</DeniedState>
        ) : (
          <Loaded query={health}>{(data) => <Machine health={data} />}</Loaded>
        )}
        <Section title={text.readiness}>
          <Loaded query={readiness}>{(data) => <ReadinessSection readiness={data} />}</Loaded>
        </Section>
      </Stack>
    </>
  );
}

const BANNERS = {
  ok: { color: 'green', icon: CircleCheck },
  warning: { color: 'yellow', icon: TriangleAlert },
  failed: { color: 'red', icon: CircleX },
} as const;

function Machine({ health }: { health: SystemHealth }) {
  const { color, icon: Icon } = BANNERS[health.status];
  return (
    <>
      <Alert
        color={color}
        title={text.statuses[health.status]}
        icon={<Icon size={18} />}
        role="status"
        className="health-banner"
      >
        {text.statusHints[health.status]}
      </Alert>
      <Checks checks={health.checks} />
      <Nodes nodes={health.nodes} />
      <div className="health-grid">
        <Media media={health.media} />
        <Queues queues={health.queues} />
        <Engines engines={health.engines} />
        <LanguageModels models={health.language_models} />
        <Downloads downloads={health.downloads} />
        <Versions versions={health.versions} />
      </div>
    </>
  );
}

function Versions({ versions }: Pick<SystemHealth, 'versions'>) {
  return (
    <Section title={text.versions}>
      <dl className="health-list">
        {(['tandem', 'node', 'postgres'] as const).map((name) => (
          <div key={name}>
            <dt>{text.software[name]}</dt>
            <dd>{versions[name] ?? text.unknown}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
