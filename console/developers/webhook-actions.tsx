import { Button, Group, NativeSelect } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { SecretDialog } from '../parts/secret-dialog.tsx';
import { SwitchActions } from '../parts/switch-actions.tsx';
import { webhookPanelText as text } from '../text/developers.ts';
import { type Webhook, type WebhookEvent, webhooksQuery } from './queries.ts';
import { WebhookDialog } from './webhook-dialog.tsx';

export function WebhookActions({ webhook, onDeleted }: { webhook: Webhook; onDeleted: () => void }) {
  const { id, status } = webhook;
  const [isEditing, editing] = useDisclosure(false);
  const [secret, setSecret] = useState<string | null>(null);
  const path = { params: { path: { id } } };
  const refresh = () => queryClient.invalidateQueries({ queryKey: webhooksQuery.queryKey });
  const setStatus = async (next: Webhook['status']) => {
    await dataOf(api.PATCH('/webhooks/{id}', { ...path, body: { status: next } }));
    await refresh();
  };
  const enable = async () => {
    await setStatus('active');
    notifyDone(text.enabled);
  };
  const rotate = async () => {
    const rotated = await dataOf(api.POST('/webhooks/{id}/rotate-secret', { ...path, body: {} }));
    setSecret(rotated.secret ?? null);
    await refresh();
  };
  const remove = async () => {
    await dataOf(api.DELETE('/webhooks/{id}', path));
    onDeleted();
    await refresh();
    notifyDone(text.deleted);
  };
  return (
    <Group gap="xs">
      {status === 'active' && <TestButton webhook={webhook} />}
      <Button size="xs" variant="default" onClick={editing.open}>
        {text.edit}
      </Button>
      <ConfirmButton
        title={text.rotateTitle}
        message={text.rotateMessage}
        confirmLabel={text.rotateConfirm}
        onConfirm={rotate}
      >
        {text.rotate}
      </ConfirmButton>
      <SwitchActions
        isActive={status === 'active'}
        text={text}
        onEnable={enable}
        onDisable={() => setStatus('disabled')}
        onDelete={remove}
      />
      <WebhookDialog webhook={webhook} isOpen={isEditing} onClose={editing.close} />
      <SecretDialog title={text.secretTitle} secret={secret} onClose={() => setSecret(null)} />
    </Group>
  );
}

function TestButton({ webhook: { id, events } }: { webhook: Webhook }) {
  const [isOpen, dialog] = useDisclosure(false);
  const send = async ({ event }: Record<string, string>) => {
    await dataOf(api.POST('/webhooks/{id}/test', { params: { path: { id } }, body: { event: event as WebhookEvent } }));
    await queryClient.invalidateQueries({ queryKey: ['deliveries', id] });
    notifyDone(text.testSent);
  };
  return (
    <>
      <Button size="xs" onClick={dialog.open}>
        {text.test}
      </Button>
      <FormDialog
        title={text.test}
        submitLabel={text.testSubmit}
        isOpen={isOpen}
        onClose={dialog.close}
        onSubmit={send}
      >
        <NativeSelect name="event" label={text.testEvent} data={events} data-autofocus />
      </FormDialog>
    </>
  );
}
