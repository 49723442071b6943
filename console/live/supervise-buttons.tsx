import { Button, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Ear, Megaphone, MessageSquareLock } from 'lucide-react';
import { useMay } from '../app/session.ts';
import { type Call, isTalking } from '../call/call-data.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { notifyFailed } from '../parts/notify.ts';
import { changeSupervision, type SupervisionMode, startSupervision, useSupervision } from '../phone/supervision.ts';
import { superviseText } from '../text/live.ts';

const MODES: { mode: SupervisionMode; icon: typeof Ear }[] = [
  { mode: 'listen', icon: Ear },
  { mode: 'whisper', icon: MessageSquareLock },
  { mode: 'barge', icon: Megaphone },
];

/** Listen, whisper or barge in from this browser. The dock at the bottom shows the current supervision. */
export function SuperviseButtons({ call }: { call: Pick<Call, 'call_id' | 'state'> }) {
  const may = useMay();
  const supervision = useSupervision();
  if (!may.administer || !isTalking(call)) return null;
  const isMine = supervision?.callId === call.call_id;
  return (
    <Button.Group>
      {MODES.map(({ mode, icon: Icon }) =>
        isMine ? (
          <ChangeButton key={mode} mode={mode} isCurrent={supervision.mode === mode} icon={Icon} />
        ) : (
          <ConfirmButton
            key={mode}
            color="blue"
            px={8}
            title={superviseText.title[mode]}
            message={<Explanation mode={mode} />}
            confirmLabel={superviseText[mode]}
            onConfirm={() => startSupervision(call.call_id, mode)}
            leftSection={<Icon size={14} aria-hidden />}
          >
            {superviseText[mode]}
          </ConfirmButton>
        ),
      )}
    </Button.Group>
  );
}

function Explanation({ mode }: { mode: SupervisionMode }) {
  return (
    <>
      <Text size="sm">{superviseText.message[mode]}</Text>
      <Text size="sm" mt="xs">
        {superviseText.cost}
      </Text>
      <Text size="sm" c="dimmed" mt="xs">
        {superviseText.law}
      </Text>
    </>
  );
}

function ChangeButton({
  mode,
  isCurrent,
  icon: Icon,
}: {
  mode: SupervisionMode;
  isCurrent: boolean;
  icon: typeof Ear;
}) {
  const change = useMutation({ mutationFn: () => changeSupervision(mode), onError: notifyFailed });
  return (
    <Button
      size="xs"
      px={8}
      variant={isCurrent ? 'filled' : 'default'}
      aria-pressed={isCurrent}
      loading={change.isPending}
      onClick={() => change.mutate()}
      leftSection={<Icon size={14} aria-hidden />}
    >
      {superviseText[mode]}
    </Button>
  );
}
