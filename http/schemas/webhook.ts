import { Type } from 'typebox';
import type { DeliveryRow } from '../../storage/queries/deliveries.ts';
import type { LoggedDelivery } from '../../storage/queries/webhook-deliveries.ts';
import { WEBHOOK_EVENTS } from '../../storage/queries/webhook-events.ts';
import type { WebhookRow } from '../../storage/queries/webhooks.ts';
import { nullable, TimeSchema } from './envelope.ts';

export const WebhookEventSchema = Type.Enum([...WEBHOOK_EVENTS], { description: 'Event type.' });
const MAX_OVERLAP_S = 7 * 86_400;

const FIELDS = {
  url: Type.String({
    description:
      'Public HTTPS URL to send events to. The host is resolved now and before every attempt. Redirects are not followed.',
    examples: ['https://hooks.example.com/tandem'],
  }),
  events: Type.Array(WebhookEventSchema, { minItems: 1, maxItems: 100, description: 'Events to send.' }),
  status: Type.Enum(['active', 'disabled'], {
    description: 'A disabled webhook receives no events, and its pending deliveries fail.',
  }),
  secret: Type.String({
    minLength: 16,
    maxLength: 256,
    pattern: '^[ -~]*$',
    description:
      'Signing secret: `whsec_` followed by at least 16 bytes in base64, or 16 to 256 printable ASCII characters. Default: generated.',
    writeOnly: true,
  }),
};
const SECRET_ONCE = Type.String({
  description: 'Signing secret. Returned only if it was generated, and only in this response.',
  examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
});

export const WebhookBody = Type.Object(
  { url: FIELDS.url, events: FIELDS.events, secret: Type.Optional(FIELDS.secret) },
  {
    additionalProperties: false,
    examples: [{ url: 'https://hooks.example.com/tandem', events: ['stt.completed', 'stt.failed'] }],
  },
);

export const WebhookPatchBody = Type.Object(
  { url: Type.Optional(FIELDS.url), events: Type.Optional(FIELDS.events), status: Type.Optional(FIELDS.status) },
  { additionalProperties: false, minProperties: 1, examples: [{ status: 'active' }] },
);

export const TestBody = Type.Object(
  { event: Type.Optional(WebhookEventSchema) },
  { additionalProperties: false, examples: [{ event: 'stt.completed' }] },
);

export const RotateSecretBody = Type.Object(
  {
    secret: Type.Optional(FIELDS.secret),
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_OVERLAP_S,
        default: 86_400,
        description: 'Seconds that the previous secrets continue to sign.',
      }),
    ),
  },
  { additionalProperties: false, examples: [{ overlap_seconds: 3600 }] },
);

const EXAMPLE_WEBHOOK = {
  id: '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11',
  url: 'https://hooks.example.com/tandem',
  events: ['stt.completed', 'stt.failed'],
  status: 'active',
  disabled_reason: null,
  failing_since: null,
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
};
const WEBHOOK_PROPERTIES = {
  id: Type.String({ format: 'uuid', description: 'Id of the webhook.' }),
  url: Type.String({ description: 'URL that receives the events.' }),
  events: Type.Array(WebhookEventSchema, { description: 'Events to send.' }),
  status: FIELDS.status,
  disabled_reason: nullable(
    Type.Enum(['by_request', 'gone', 'failing'], {
      description:
        'Why the webhook was disabled. `by_request`: you did. `gone`: the endpoint returned 410. `failing`: every attempt failed for five days.',
    }),
  ),
  failing_since: nullable({
    ...TimeSchema,
    description: 'When attempts started to fail. Null if the last one succeeded.',
  }),
  created_at: TimeSchema,
  updated_at: TimeSchema,
};
export const WebhookSchema = Type.Object(WEBHOOK_PROPERTIES, { examples: [EXAMPLE_WEBHOOK] });
export const NewWebhookSchema = Type.Object(
  { ...WEBHOOK_PROPERTIES, secret: Type.Optional(SECRET_ONCE) },
  { examples: [{ ...EXAMPLE_WEBHOOK, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }] },
);
export const RotatedWebhookSchema = Type.Object(
  {
    ...WEBHOOK_PROPERTIES,
    secret: Type.Optional(SECRET_ONCE),
    previous_secret_expires_at: { ...TimeSchema, description: 'When the previous secrets stop signing.' },
  },
  { examples: [{ ...EXAMPLE_WEBHOOK, previous_secret_expires_at: '2026-02-01T09:30:00.000Z' }] },
);

export function presentWebhook(row: WebhookRow) {
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    status: row.status,
    disabled_reason: row.disabledReason,
    failing_since: row.failingSince?.toISOString() ?? null,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}

export const DeliveryStatusSchema = Type.Enum(['pending', 'delivered', 'failed'], {
  description: 'Status of the delivery.',
});
export const EXAMPLE_DELIVERY = {
  id: '0d1f8f6e-1b1e-4f6e-8e54-2b9a6f3f5c11',
  subscription_id: EXAMPLE_WEBHOOK.id,
  message_id: '4c1c8a52-7f43-4b53-9f8e-3a4f5c0f7f02',
  event: 'stt.completed',
  status: 'pending',
  attempts: 1,
  last_http_status: 503,
  last_error: 'status_not_2xx',
  next_attempt_at: '2026-01-31T09:30:05.000Z',
  replay_of: null,
  created_at: '2026-01-31T09:30:00.000Z',
  delivered_at: null,
};
export const DELIVERY_PROPERTIES = {
  id: Type.String({ format: 'uuid', description: 'Id of the delivery.' }),
  subscription_id: Type.String({ format: 'uuid', description: 'Id of the webhook.' }),
  message_id: Type.String({ description: 'Value of `webhook-id`, the same in every attempt and replay.' }),
  event: WebhookEventSchema,
  status: DeliveryStatusSchema,
  attempts: Type.Integer({ description: 'Attempts so far, of at most eight.' }),
  last_http_status: nullable(Type.Integer({ description: 'HTTP status of the last attempt.' })),
  last_error: nullable(
    Type.String({
      description: 'Why the last attempt failed.',
      examples: ['timeout', 'status_not_2xx', 'redirect_refused', 'endpoint_disabled'],
    }),
  ),
  next_attempt_at: nullable({ ...TimeSchema, description: 'When the next attempt is due.' }),
  replay_of: nullable(Type.String({ format: 'uuid', description: 'Delivery that this one replays.' })),
  created_at: TimeSchema,
  delivered_at: nullable({ ...TimeSchema, description: 'When the endpoint accepted it.' }),
};
export const WebhookDeliverySchema = Type.Object(DELIVERY_PROPERTIES, { examples: [EXAMPLE_DELIVERY] });
export const DELIVERY_LOG = {
  log: Type.Array(
    Type.Object({
      attempt: Type.Integer({ description: 'Number of the attempt, from 1.' }),
      http_status: nullable(Type.Integer({ description: 'HTTP status of the response.' })),
      error: nullable(Type.String({ description: 'Why the attempt failed.' })),
      started_at: TimeSchema,
      duration_ms: Type.Integer({ description: 'Duration, in milliseconds.' }),
    }),
    { description: 'Attempts, oldest first.' },
  ),
};
export const EXAMPLE_ATTEMPT = {
  ...{ attempt: 1, http_status: 503, error: 'status_not_2xx', started_at: '2026-01-31T09:30:00.000Z', duration_ms: 84 },
};
export const LoggedDeliverySchema = Type.Object(
  { ...DELIVERY_PROPERTIES, ...DELIVERY_LOG },
  { examples: [{ ...EXAMPLE_DELIVERY, log: [EXAMPLE_ATTEMPT] }] },
);

export function presentWebhookDelivery(row: DeliveryRow) {
  return {
    id: row.id,
    subscription_id: row.subscriptionId,
    message_id: row.eventId,
    event: row.event,
    status: row.status,
    attempts: row.attempts,
    last_http_status: row.lastHttpStatus,
    last_error: row.lastError,
    next_attempt_at: row.nextAttemptAt?.toISOString() ?? null,
    replay_of: row.replayOf,
    created_at: row.createdAt.toISOString(),
    delivered_at: row.deliveredAt?.toISOString() ?? null,
  };
}

export function presentLoggedDelivery(row: LoggedDelivery) {
  return {
    ...presentWebhookDelivery(row),
    log: row.log.map(({ attempt, httpStatus, error, startedAt, durationMs }) => ({
      attempt,
      http_status: httpStatus,
      error,
      started_at: startedAt.toISOString(),
      duration_ms: durationMs,
    })),
  };
}
