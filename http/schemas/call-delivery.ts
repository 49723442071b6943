import { Type } from 'typebox';
import type { DeliveryRow } from '../../storage/queries/deliveries.ts';
import type { LoggedDelivery } from '../../storage/queries/webhook-deliveries.ts';
import { nullable } from './envelope.ts';
import {
  DELIVERY_LOG,
  DELIVERY_PROPERTIES,
  EXAMPLE_ATTEMPT,
  EXAMPLE_DELIVERY,
  presentLoggedDelivery,
  presentWebhookDelivery,
} from './webhook.ts';

const CALL_DELIVERY_PROPERTIES = {
  ...DELIVERY_PROPERTIES,
  kind: Type.Enum(['callback', 'webhook'], {
    description: '`callback`: to the `callback_url` of the call. `webhook`: to a webhook of the workspace.',
  }),
  subscription_id: nullable(Type.String({ format: 'uuid', description: 'Id of the webhook. Null for a callback.' })),
  message_id: Type.String({
    description: 'Id of the event, sent as `webhook-id`: the same in every attempt and replay.',
  }),
  url: Type.String({ description: 'URL of the receiver, without user, password and query.' }),
};
const EXAMPLE = {
  ...EXAMPLE_DELIVERY,
  ...{ kind: 'callback', subscription_id: null, event: 'call.completed', url: 'https://hooks.example.com/calls' },
};

export const CallDeliverySchema = Type.Object(CALL_DELIVERY_PROPERTIES, { examples: [EXAMPLE] });
export const LoggedCallDeliverySchema = Type.Object(
  { ...CALL_DELIVERY_PROPERTIES, ...DELIVERY_LOG },
  { examples: [{ ...EXAMPLE, log: [EXAMPLE_ATTEMPT] }] },
);

export function presentCallDelivery(row: DeliveryRow) {
  return { ...presentWebhookDelivery(row), kind: row.kind, url: withoutSecrets(row.url) };
}

export function presentLoggedCallDelivery(row: LoggedDelivery) {
  return { ...presentLoggedDelivery(row), kind: row.kind, url: withoutSecrets(row.url) };
}

/** Removes user, password and query, where receivers put tokens. */
function withoutSecrets(text: string): string {
  const url = URL.parse(text);
  return url === null ? '' : `${url.origin}${url.pathname}`;
}
