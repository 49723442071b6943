import { Anchor, Card, Group, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { callText } from '../text/phone.ts';
import { callerOf, causeOf, Duration } from './call-status.tsx';
import type { EndedCall } from './phone-state.ts';

export function EndedCard({ ended }: { ended: EndedCall }) {
  const cause = causeOf(ended);
  return (
    <Card withBorder role="status">
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" fw={600}>
          {callText.ended}
          {cause !== null && `: ${cause}`}
        </Text>
        <Text size="sm" component="div">
          <Duration progress={ended.progress} endedAt={ended.progress.outcome?.at ?? ended.at} />
        </Text>
      </Group>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{callerOf(ended)}</Text>
        <Anchor component={Link} to={`/calls/${encodeURIComponent(ended.callId)}`} size="sm">
          {callText.openCall}
        </Anchor>
      </Group>
    </Card>
  );
}
