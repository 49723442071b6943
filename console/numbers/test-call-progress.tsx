import { Alert, Button, Group, Stack, Timeline } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { useLiveEvents } from '../app/live-events.ts';
import { urlOf } from '../app/url-of.ts';
import { Dialog } from '../parts/dialog.tsx';
import { notifyFailed } from '../parts/notify.ts';
import { Time } from '../parts/time.tsx';
import { testCallText as text } from '../text/trunks.ts';

type Step = keyof typeof text.steps;

interface Happened {
  sequence: number;
  event: Step;
  at: string;
}

const STEPS = Object.keys(text.steps) as Step[];
const FINAL: readonly Step[] = ['call.completed', 'call.not_answered', 'call.failed', 'call.temporaryfailed'];

interface TestCallProgressProps {
  callId: string | null;
  trunkName: string;
  onClose: () => void;
}

export function TestCallProgress({ callId, trunkName, onClose }: TestCallProgressProps) {
  return (
    <Dialog opened={callId !== null} onClose={onClose} title={text.title(trunkName)} closeOnClickOutside={false}>
      {callId !== null && <Progress key={callId} callId={callId} onClose={onClose} />}
    </Dialog>
  );
}

function Progress({ callId, onClose }: { callId: string; onClose: () => void }) {
  const [happened, setHappened] = useState<readonly Happened[]>([]);
  const isOver = happened.some(({ event }) => FINAL.includes(event));
  const add = (data: unknown) => {
    const step = data as Happened;
    // A new stream repeats known events.
    setHappened((known) => (known.some(({ sequence }) => sequence === step.sequence) ? known : [...known, step]));
  };
  const url = urlOf(`/dialer/click2call/${encodeURIComponent(callId)}/stream`);
  useLiveEvents(isOver ? null : url, Object.fromEntries(STEPS.map((step) => [step, add])));
  const hangUp = () =>
    dataOf(api.POST('/dialer/click2call/{id}/hangup', { params: { path: { id: callId } } })).catch(notifyFailed);
  return (
    <Stack>
      <Timeline active={happened.length - 1} bulletSize={16} lineWidth={2} role="log" aria-label={text.progress}>
        {happened.map(({ sequence, event, at }) => (
          <Timeline.Item key={sequence} title={text.steps[event]}>
            <Time at={at} show="time" />
          </Timeline.Item>
        ))}
      </Timeline>
      {isOver && <Verdict wasBridged={happened.some(({ event }) => event === 'call.bridged')} />}
      <Group justify="flex-end">
        <Button component={Link} to={`/calls/${encodeURIComponent(callId)}`} variant="default">
          {text.open}
        </Button>
        {isOver ? (
          <Button onClick={onClose}>{text.done}</Button>
        ) : (
          <Button color="red" onClick={hangUp}>
            {text.hangUp}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function Verdict({ wasBridged }: { wasBridged: boolean }) {
  return <Alert color={wasBridged ? 'green' : 'yellow'}>{wasBridged ? text.worked : text.unconnected}</Alert>;
}
