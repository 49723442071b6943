import { Stack, Text } from '@mantine/core';
import { bytes } from '../parts/format.ts';
import { ShareBar } from '../parts/share-bar.tsx';
import { Time } from '../parts/time.tsx';
import { healthText as text } from '../text/health.ts';
import type { SystemHealth } from './queries.ts';
import { Section } from './section.tsx';

type Download = SystemHealth['downloads'][number];

export function Downloads({ downloads }: { downloads: readonly Download[] }) {
  return (
    <Section title={text.downloads}>
      {downloads.length === 0 && (
        <Text size="sm" c="dimmed">
          {text.noDownloads}
        </Text>
      )}
      <Stack gap="sm">
        {downloads.map((download) => (
          <div key={`${download.kind} ${download.model} ${download.total_bytes}`}>
            <Text size="sm">{download.model ?? text.byAddress}</Text>
            <ShareBar value={download.progress} text={sizeOf(download)} />
            <Text size="xs" c="dimmed">
              {text.lastBytes} <Time at={download.updated_at} />
            </Text>
          </div>
        ))}
      </Stack>
    </Section>
  );
}

function sizeOf({ bytes: received, total_bytes: total }: Download): string {
  return total === null ? bytes(received) : text.downloadOf(bytes(received), bytes(total));
}
