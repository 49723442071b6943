import { Text } from '@mantine/core';
import { StatusBadge } from '../parts/status-badge.tsx';
import { healthText as text } from '../text/health.ts';
import type { Readiness } from './queries.ts';

/** The checks that load balancers use: dependencies of the responding node. */
export function ReadinessSection({ readiness: { isReady, checks } }: { readiness: Readiness }) {
  return (
    <>
      <Text size="sm" mb="xs">
        {isReady ? text.ready : text.notReady}
      </Text>
      <dl className="health-list">
        {checks.map(({ name, ok, reason }) => (
          <div key={name}>
            <dt>{text.readinessNames[name] ?? name}</dt>
            <dd>
              {ok ? (
                <StatusBadge tone="good">{text.ok}</StatusBadge>
              ) : (
                <>
                  <StatusBadge tone="bad">{text.checkStatuses.failed}</StatusBadge> {reason}
                </>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
