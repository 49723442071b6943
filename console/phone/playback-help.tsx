import { Alert, Button, Group, Text } from '@mantine/core';
import { phoneText } from '../text/phone.ts';
import { agentPhone } from './agent-phone.ts';
import type { PhoneState } from './phone-state.ts';

/** Shown when the browser blocks sound until a click, for example after a reload. */
export function PlaybackHelp({ phone }: { phone: PhoneState }) {
  if (!phone.isPlaybackBlocked) return null;
  return (
    <Alert color="orange" role="alert" p="xs">
      <Group justify="space-between" gap="xs">
        <Text size="sm">{phoneText.playbackBlocked}</Text>
        <Button size="xs" onClick={() => void agentPhone.play()}>
          {phoneText.play}
        </Button>
      </Group>
    </Alert>
  );
}
