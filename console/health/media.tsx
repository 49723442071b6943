import { Stack } from '@mantine/core';
import { percent } from '../parts/format.ts';
import { ShareBar } from '../parts/share-bar.tsx';
import { healthText as text } from '../text/health.ts';
import { toneOf } from './nodes.tsx';
import type { SystemHealth } from './queries.ts';
import { Section } from './section.tsx';

export function Media({ media }: Pick<SystemHealth, 'media'>) {
  const { sessions, max_sessions: most, workers } = media;
  const share = most === 0 ? 0 : sessions / most;
  return (
    <Section title={text.media}>
      <Stack gap="xs">
        <ShareBar label={text.sessions} value={share} text={text.sessionsOf(sessions, most)} tone={toneOf(share)} />
        {workers.map(({ utilization, lateness_ms: latenessMs }, index) => (
          <ShareBar
            // biome-ignore lint/suspicious/noArrayIndexKey: workers have no other name
            key={index}
            label={text.worker(index + 1)}
            value={utilization}
            text={`${percent(utilization)}, ${text.lateness(latenessMs)}`}
            tone={toneOf(utilization)}
          />
        ))}
      </Stack>
    </Section>
  );
}
