import { Button, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import { PhoneForwarded, PhoneOff } from 'lucide-react';
import { useMay } from '../../app/session.ts';
import { ConfirmButton } from '../../parts/confirm-button.tsx';
import { notifyFailed } from '../../parts/notify.ts';
import { actionsText } from '../../text/call-actions.ts';
import { type Call, isTalking } from '../call-data.ts';
import { cancelTransfer, completeTransfer, hangUp } from './requests.ts';
import { TransferDialog } from './transfer-dialog.tsx';

interface CallActionsProps {
  call: Pick<Call, 'call_id' | 'legs' | 'state' | 'call_done'>;
  /** Leg of the target while a transfer is in progress. */
  transferTarget: string | null;
}

/** Actions on a live call as a whole. Viewers have none. */
export function CallActions({ call, transferTarget }: CallActionsProps) {
  const may = useMay();
  const [isTransferring, dialog] = useDisclosure(false);
  if (call.call_done || !may.write) return null;
  return (
    <Group gap={6} wrap="nowrap">
      {isTalking(call) && transferTarget === null && (
        <Button
          size="xs"
          variant="default"
          leftSection={<PhoneForwarded size={14} aria-hidden />}
          onClick={dialog.open}
        >
          {actionsText.transfer}
        </Button>
      )}
      {transferTarget !== null && <TransferProgress call={call} target={transferTarget} />}
      <ConfirmButton
        color="red"
        variant="light"
        leftSection={<PhoneOff size={14} aria-hidden />}
        title={actionsText.hangUpTitle}
        message={actionsText.hangUpMessage}
        confirmLabel={actionsText.hangUp}
        onConfirm={() => hangUp(call.call_id)}
      >
        {actionsText.hangUp}
      </ConfirmButton>
      <TransferDialog call={call} isOpen={isTransferring} onClose={dialog.close} />
    </Group>
  );
}

function TransferProgress({ call, target }: { call: CallActionsProps['call']; target: string }) {
  const complete = useMutation({ mutationFn: () => completeTransfer(call.call_id), onError: notifyFailed });
  const cancel = useMutation({ mutationFn: () => cancelTransfer(call.call_id), onError: notifyFailed });
  const hasAnswered = call.legs.some(({ leg_id: legId, state }) => legId === target && state === 'answered');
  return (
    <>
      {hasAnswered && (
        <Button size="xs" loading={complete.isPending} onClick={() => complete.mutate()}>
          {actionsText.completeTransfer}
        </Button>
      )}
      <Button size="xs" variant="default" loading={cancel.isPending} onClick={() => cancel.mutate()}>
        {actionsText.cancelTransfer}
      </Button>
    </>
  );
}
