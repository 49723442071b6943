import { Text } from '@mantine/core';
import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { healthText } from '../text/trunks.ts';
import type { Trunk } from './queries.ts';

type Reachability = Trunk['reachability'];

const HEALTH_TONES: Record<Reachability['state'], Tone> = { up: 'good', down: 'bad', unknown: 'neutral' };
const REGISTRATION_TONES: Record<NonNullable<Trunk['registration']>['state'], Tone> = {
  registered: 'good',
  registering: 'active',
  failed: 'bad',
};

export function ReachabilityBadge({ reachability: { state } }: { reachability: Reachability }) {
  return <StatusBadge tone={HEALTH_TONES[state]}>{healthText[state]}</StatusBadge>;
}

export function TrunkHealth({ trunk }: { trunk: Trunk }) {
  if (trunk.status === 'disabled') return <StatusBadge tone="neutral">{healthText.disabled}</StatusBadge>;
  return <ReachabilityBadge reachability={trunk.reachability} />;
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
