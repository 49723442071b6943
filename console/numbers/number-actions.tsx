import { Button, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { notifyDone, notifyFailed } from '../parts/notify.ts';
import { numbersText as text } from '../text/numbers.ts';
import { InboundDialog } from './inbound-dialog.tsx';
import { type RentedNumber, refreshNumbers } from './queries.ts';

export function NumberActions({ number, isCallerId }: { number: RentedNumber; isCallerId: boolean }) {
  const { e164 } = number;
  const [isEditing, editing] = useDisclosure(false);
  const callerId = useMutation({
    mutationFn: () => dataOf(api.PUT('/dialer/caller-id', { body: { caller_id: e164 } })),
    onError: notifyFailed,
    onSuccess: async () => {
      await refreshNumbers();
      notifyDone(text.callerIdDone(e164));
    },
  });
  const release = async () => {
    await dataOf(api.DELETE('/dialer/numbers/{e164}', { params: { path: { e164 } } }));
    notifyDone(text.released(e164));
    await refreshNumbers();
  };
  return (
    <Group gap={6} justify="flex-end" className="row-actions">
      <Button size="compact-xs" variant="default" onClick={editing.open} aria-label={`${text.editRule}: ${e164}`}>
        {text.editRule}
      </Button>
      {!isCallerId && (
        <Button
          size="compact-xs"
          variant="default"
          loading={callerId.isPending}
          onClick={() => callerId.mutate()}
          aria-label={`${text.callerId}: ${e164}`}
        >
          {text.callerId}
        </Button>
      )}
      <ConfirmButton
        size="compact-xs"
        aria-label={`${text.release}: ${e164}`}
        title={text.releaseTitle(e164)}
        message={text.releaseMessage}
        confirmLabel={text.releaseConfirm}
        onConfirm={release}
      >
        {text.release}
      </ConfirmButton>
      <InboundDialog number={number} isOpen={isEditing} onClose={editing.close} />
    </Group>
  );
}
