import { ActionIcon, Group, Tooltip } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Mic, MicOff, Pause, Play } from 'lucide-react';
import type { ReactNode } from 'react';
import { notifyFailed } from '../../parts/notify.ts';
import { actionsText } from '../../text/call-actions.ts';
import { roleText } from '../../text/call-words.ts';
import type { Leg } from '../call-data.ts';
import { setHeld, setMuted } from './requests.ts';

interface LegControlsProps {
  callId: string;
  leg: Pick<Leg, 'leg_id' | 'role' | 'state' | 'muted'>;
}

/** Mute and hold of one leg of a bridged call. */
export function LegControls({ callId, leg }: LegControlsProps) {
  const party = roleText[leg.role].toLowerCase();
  const isHeld = leg.state === 'held';
  if (leg.state !== 'answered' && !isHeld) return null;
  return (
    <Group gap={2} wrap="nowrap">
      <Toggle
        label={leg.muted ? actionsText.unmute(party) : actionsText.mute(party)}
        isOn={leg.muted}
        onToggle={() => setMuted(callId, leg.leg_id, !leg.muted)}
      >
        {leg.muted ? <MicOff size={15} /> : <Mic size={15} />}
      </Toggle>
      <Toggle
        label={isHeld ? actionsText.resume(party) : actionsText.hold(party)}
        isOn={isHeld}
        onToggle={() => setHeld(callId, leg.leg_id, !isHeld)}
      >
        {isHeld ? <Play size={15} /> : <Pause size={15} />}
      </Toggle>
    </Group>
  );
}

interface ToggleProps {
  label: string;
  isOn: boolean;
  onToggle: () => Promise<unknown>;
  children: ReactNode;
}

/** The switch changes when the server's event arrives. */
function Toggle({ label, isOn, onToggle, children }: ToggleProps) {
  const action = useMutation({ mutationFn: onToggle, onError: notifyFailed });
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant={isOn ? 'light' : 'subtle'}
        color={isOn ? 'orange' : 'gray'}
        aria-label={label}
        aria-pressed={isOn}
        loading={action.isPending}
        onClick={() => action.mutate()}
      >
        {children}
      </ActionIcon>
    </Tooltip>
  );
}
