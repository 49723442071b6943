import { Anchor, Button, Group, SegmentedControl, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Ear, Volume2 } from 'lucide-react';
import { notifyFailed } from '../parts/notify.ts';
import { superviseText } from '../text/phone.ts';
import { LevelBar } from './level-bar.tsx';
import {
  changeSupervision,
  endSupervision,
  type Supervision,
  type SupervisionMode,
  usePhoneState,
} from './supervision.ts';

const MODES = ['listen', 'whisper', 'barge'] as const;

/** The supervision of this tab, in one row: mode switch and leave button. */
export function DockSupervision({ supervision: { callId, mode, phone } }: { supervision: Supervision }) {
  const { call } = usePhoneState(phone);
  const changing = useMutation({ mutationFn: changeSupervision, onError: notifyFailed });
  const isOn = call?.phase === 'answered';
  return (
    <section className="dock-row" aria-label={superviseText.region}>
      <Ear size={18} aria-hidden />
      <div className="dock-who">
        <Anchor component={Link} to={`/calls/${encodeURIComponent(callId)}`} fw={600} truncate>
          {call?.customerNumber ?? superviseText.openCall}
        </Anchor>
        <Text size="xs" c="dimmed" role="status">
          {isOn ? superviseText.modeHint[mode] : superviseText.connecting}
        </Text>
      </div>
      <div className="dock-levels">
        <LevelBar icon={Volume2} label={superviseText.region} level={() => phone.levels().far} />
      </div>
      <Group gap={6} wrap="nowrap">
        <SegmentedControl
          aria-label={superviseText.mode}
          size="xs"
          value={changing.isPending ? changing.variables : mode}
          onChange={(value) => changing.mutate(value as SupervisionMode)}
          disabled={!isOn}
          data={MODES.map((value) => ({ value, label: superviseText[value] }))}
        />
        <Button size="xs" color="red" onClick={() => void endSupervision()}>
          {superviseText.leave}
        </Button>
      </Group>
    </section>
  );
}
