import { Alert, Group, Title } from '@mantine/core';
import { useMay } from '../app/session.ts';
import { CopyField } from '../parts/copy-field.tsx';
import { Facts } from '../parts/facts.tsx';
import { SidePanel } from '../parts/side-panel.tsx';
import { EmptyState } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { webhookPanelText as text, webhooksText } from '../text/developers.ts';
import { Deliveries } from './deliveries.tsx';
import type { Webhook } from './queries.ts';
import { WebhookActions } from './webhook-actions.tsx';
import { WebhookStatus } from './webhook-status.tsx';

interface WebhookPanelProps {
  webhooks: readonly Webhook[];
  /** Id of the shown webhook; undefined closes the panel. */
  id: string | undefined;
  onClose: () => void;
}

export function WebhookPanel({ webhooks, id, onClose }: WebhookPanelProps) {
  const webhook = webhooks.find((each) => each.id === id);
  const may = useMay();
  return (
    <SidePanel title={webhook?.url ?? webhooksText.list} isOpen={id !== undefined} onClose={onClose}>
      {webhook === undefined ? (
        <EmptyState title={webhooksText.gone} />
      ) : (
        <>
          {may.administer && <WebhookActions webhook={webhook} onDeleted={onClose} />}
          {webhook.status === 'disabled' && (
            <Alert color="yellow">{webhooksText.reasons[webhook.disabled_reason ?? 'by_request']}</Alert>
          )}
          <WebhookFacts webhook={webhook} />
          <section>
            <Title order={3} size="h6" mb="xs">
              {text.deliveries}
            </Title>
            <Deliveries webhookId={webhook.id} />
          </section>
        </>
      )}
    </SidePanel>
  );
}

function WebhookFacts({ webhook }: { webhook: Webhook }) {
  const { id, events, failing_since: failing, created_at: created } = webhook;
  return (
    <Facts
      columns="one"
      facts={[
        {
          label: webhooksText.status,
          value: (
            <Group gap="xs">
              <WebhookStatus webhook={webhook} />
            </Group>
          ),
        },
        ...(failing === null ? [] : [{ label: webhooksText.failingSince, value: <Time at={failing} /> }]),
        { label: webhooksText.events, value: events.join(', ') },
        { label: webhooksText.created, value: <Time at={created} /> },
        { label: text.id, value: <CopyField value={id} label={text.id} /> },
      ]}
    />
  );
}
