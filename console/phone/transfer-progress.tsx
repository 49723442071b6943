import { Alert, Button, Group } from '@mantine/core';
import { callText } from '../text/phone.ts';
import { callActions } from './call-actions.ts';
import type { PhoneCall } from './phone-state.ts';

export function TransferProgress({ call: { progress, legId } }: { call: PhoneCall }) {
  const { transfer, hasTransferFailed } = progress;
  // Only the other side of the consultation decides.
  if (transfer?.legId === legId) return null;
  if (transfer === null) {
    if (!hasTransferFailed) return null;
    return (
      <Alert color="orange" role="status" p="xs">
        {callText.transferFailed}
      </Alert>
    );
  }
  return (
    <Group gap="xs" grow>
      {transfer.mode === 'attended' && (
        <Button size="xs" onClick={() => void callActions.completeTransfer()} disabled={!transfer.isAnswered}>
          {callText.completeTransfer}
        </Button>
      )}
      <Button size="xs" variant="default" onClick={() => void callActions.cancelTransfer()}>
        {callText.cancelTransfer}
      </Button>
    </Group>
  );
}
