import { Text } from '@mantine/core';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { healthText } from '../text/trunks.ts';
import type { Trunk } from './queries.ts';
import { reachabilityText } from './reachability.ts';

const HEALTH_TONES: Record<Trunk['reachability']['state'], Tone> = { up: 'good', down: 'bad', unknown: 'neutral' };
const REGISTRATION_TONES: Record<NonNullable<Trunk['registration']>['state'], Tone> = {
  registered: 'good',
  registering: 'active',
  failed: 'bad',
};

/** State of a trunk or of one of its gateways. */
export function ReachabilityBadge(checked: Pick<Trunk, 'health' | 'reachability'>) {
  return <StatusBadge tone={HEALTH_TONES[checked.reachability.state]}>{reachabilityText(checked).name}</StatusBadge>;
}

export function TrunkHealth({ trunk }: { trunk: Trunk }) {
  if (trunk.status === 'disabled') return <StatusBadge tone="neutral">{healthText.disabled}</StatusBadge>;
  return <ReachabilityBadge {...trunk} />;
}

export function RegistrationHealth({ trunk: { register, registration } }: { trunk: Trunk }) {
  if (!register) {
    return (
      <Text size="sm" c="dimmed" component="span">
        {healthText.noRegistration}
      </Text>
    );
  }
  const state = registration?.state ?? 'registering';
  return <StatusBadge tone={REGISTRATION_TONES[state]}>{healthText[state]}</StatusBadge>;
}
