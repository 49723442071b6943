import { Button, Checkbox, Group, PasswordInput, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { changedFields, useAsOpened } from '../parts/changed-fields.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { SecretDialog } from '../parts/secret-dialog.tsx';
import { webhooksText as text, webhookPanelText } from '../text/developers.ts';
import { type Webhook, type WebhookEvent, webhooksQuery } from './queries.ts';

const KNOWN: Record<WebhookEvent, true> = {
  'call.initiated': true,
  'call.ringing': true,
  'call.answered': true,
  'call.bridged': true,
  'call.completed': true,
  'call.not_answered': true,
  'call.failed': true,
  'call.temporaryfailed': true,
  'trunk.down': true,
  'trunk.up': true,
  'tts.completed': true,
  'tts.failed': true,
  'stt.completed': true,
  'stt.failed': true,
  'voice.created': true,
  'voice.ready': true,
  'voice.failed': true,
};

export const EVENTS = Object.keys(KNOWN) as WebhookEvent[];

interface WebhookDialogProps {
  /** Edits this webhook. Omitted: adds one. */
  webhook?: Webhook;
  isOpen: boolean;
  onClose: () => void;
  onSaved?: (webhook: Pick<Webhook, 'id'>) => void;
}

export function WebhookDialog({ webhook: current, isOpen, onClose, onSaved }: WebhookDialogProps) {
  const webhook = useAsOpened(current, isOpen);
  const [secretOf, setSecretOf] = useState<{ id: string; secret: string } | null>(null);
  const save = async (fields: Record<string, string>) => {
    const body = { url: fields.url!.trim(), events: EVENTS.filter((event) => fields[event] !== undefined) };
    if (webhook === undefined) {
      const own = fields.secret ? { secret: fields.secret } : {};
      const added = await dataOf(api.POST('/webhooks', { body: { ...body, ...own } }));
      // The secret is read first: `onSaved` may open something above it.
      if (added.secret) setSecretOf({ id: added.id, secret: added.secret });
      else onSaved?.(added);
    } else {
      const shown = { url: webhook.url, events: EVENTS.filter((event) => webhook.events.includes(event)) };
      const changes = changedFields(body, shown);
      // The server rejects a request without changes.
      if (Object.keys(changes).length > 0) {
        await dataOf(api.PATCH('/webhooks/{id}', { params: { path: { id: webhook.id } }, body: changes }));
      }
    }
    await queryClient.invalidateQueries({ queryKey: webhooksQuery.queryKey });
    notifyDone(webhook === undefined ? text.added : text.saved);
  };
  const closeSecret = () => {
    setSecretOf(null);
    if (secretOf !== null) onSaved?.(secretOf);
  };
  return (
    <>
      <FormDialog
        title={webhook === undefined ? text.add : webhookPanelText.editTitle}
        submitLabel={webhook === undefined ? text.submitAdd : text.submitEdit}
        size="lg"
        isOpen={isOpen}
        onClose={onClose}
        onSubmit={save}
      >
        <TextInput
          name="url"
          type="url"
          label={text.url}
          description={text.urlHint}
          defaultValue={webhook?.url}
          maxLength={2048}
          autoComplete="off"
          required
          data-autofocus
        />
        <EventFields events={webhook?.events ?? []} />
        {webhook === undefined && (
          <PasswordInput
            name="secret"
            label={text.secret}
            description={text.secretHint}
            minLength={16}
            maxLength={256}
            autoComplete="new-password"
          />
        )}
      </FormDialog>
      <SecretDialog title={text.secret} secret={secretOf?.secret ?? null} onClose={closeSecret} />
    </>
  );
}

function EventFields({ events }: { events: readonly WebhookEvent[] }) {
  const [chosen, setChosen] = useState<string[]>([...events]);
  return (
    <Checkbox.Group label={text.events} description={text.eventsHint} value={chosen} onChange={setChosen}>
      <Stack gap="xs" mt="xs">
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing="xs">
          {EVENTS.map((event) => (
            <Checkbox key={event} name={event} value={event} size="xs" label={event} required={chosen.length === 0} />
          ))}
        </SimpleGrid>
        <Group>
          <Button size="compact-xs" variant="default" onClick={() => setChosen([...EVENTS])}>
            {text.allEvents}
          </Button>
        </Group>
      </Stack>
    </Checkbox.Group>
  );
}
