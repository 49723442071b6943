import { Alert, Button, Card, Group, Loader, Stack, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Headphones, PhoneOff } from 'lucide-react';
import { CopyBlock } from '../parts/copy-field.tsx';
import { phoneText } from '../text/phone.ts';
import { agentPhone, goAvailable } from './agent-phone.ts';
import type { PhoneProblem, PhoneState } from './phone-state.ts';

/** Switches between available and offline. */
export function AvailabilityButton({ phone }: { phone: PhoneState }) {
  const going = useMutation({ mutationFn: goAvailable });
  if (phone.link === 'off') {
    return (
      <Button
        leftSection={<Headphones size={16} aria-hidden />}
        loading={going.isPending}
        onClick={() => going.mutate()}
      >
        {phoneText.goAvailable}
      </Button>
    );
  }
  return (
    <Button
      variant="default"
      leftSection={<PhoneOff size={16} aria-hidden />}
      onClick={() => agentPhone.stop()}
      disabled={phone.call !== null}
      title={phone.call === null ? undefined : phoneText.goOfflineEndsCall}
    >
      {phoneText.goOffline}
    </Button>
  );
}

export function AvailabilityCard({ phone }: { phone: PhoneState }) {
  const { title, hint } = TEXTS[phone.link];
  return (
    <Card withBorder>
      <Group wrap="nowrap" align="flex-start" gap="sm">
        {phone.link === 'connecting' || phone.link === 'reconnecting' ? (
          <Loader size="xs" mt={4} aria-hidden />
        ) : (
          <span className="availability-dot" data-link={phone.link} aria-hidden />
        )}
        <div role="status">
          <Title order={2} size="h5">
            {title}
          </Title>
          <Text size="sm" c="dimmed">
            {hint}
          </Text>
        </div>
      </Group>
    </Card>
  );
}

const TEXTS = {
  off: { title: phoneText.offTitle, hint: phoneText.offHint },
  connecting: { title: phoneText.connecting, hint: '' },
  online: { title: phoneText.readyTitle, hint: phoneText.readyHint },
  reconnecting: { title: phoneText.reconnecting, hint: '' },
};

/** Why the phone switched off, with advice. */
export function ProblemAlert({ problem }: { problem: PhoneProblem | null }) {
  if (problem === null) return null;
  if (problem.code === 'WEBRTC_NOT_AVAILABLE') return <UnavailableAlert detail={problem.message} />;
  return (
    <Alert color="red" role="alert" title={phoneText.problemTitle}>
      {problem.message}
    </Alert>
  );
}

/** Shown when the server lacks the worker that connects browsers. */
export function UnavailableAlert({ detail }: { detail: string | null }) {
  return (
    <Alert color="orange" role="alert" title={phoneText.unavailableTitle}>
      <Stack gap="xs">
        <Text size="sm">{phoneText.unavailableHint}</Text>
        <CopyBlock value={phoneText.unavailableCommand} label={phoneText.unavailableCommandLabel} />
        {detail !== null && (
          <Text size="xs" c="dimmed">
            {detail}
          </Text>
        )}
      </Stack>
    </Alert>
  );
}
