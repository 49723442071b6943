import { type TObject, type TSchema, Type } from 'typebox';
import { WEBHOOK_EVENTS, WEBHOOK_EXAMPLES, type WebhookEvent } from '../storage/queries/webhook-events.ts';
import { callbackSchema, ENDED_CALL_EXAMPLE } from './schemas/call.ts';
import { nullable, TimeSchema } from './schemas/envelope.ts';

const TIME = '2026-01-31T09:31:52.300Z';

const CALL_ENDED = {
  operationId: 'callEnded',
  tags: ['click-to-call'],
  summary: 'Sent to the callback_url of a call once it is over',
  description: 'Signed with the callback_secret. Anything but a 2XX, a redirect included, is tried again; 410 ends it.',
  security: [],
  parameters: [
    header('x-qcall-signature', 't=<unix seconds>,v1=<hex HMAC-SHA256(callback_secret, t + "." + raw body)>'),
    header('webhook-id', 'The same in every attempt (Standard Webhooks).'),
    header('webhook-timestamp', 'Unix seconds of this attempt.'),
    header('webhook-signature', 'v1,<base64 HMAC-SHA256(callback_secret, id + "." + timestamp + "." + raw body)>'),
  ],
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: callbackSchema({ $ref: '#/components/schemas/Call' } as TSchema),
        example: {
          event: 'call.completed',
          event_id: '8f0f2a7b-0a4e-4c7c-9c9f-6b1d9d1e5a44',
          sequence: 4,
          timestamp: TIME,
          call_id: ENDED_CALL_EXAMPLE.call_id,
          reference_id: ENDED_CALL_EXAMPLE.reference_id,
          metadata: ENDED_CALL_EXAMPLE.metadata,
          data: { call: ENDED_CALL_EXAMPLE },
        },
      },
    },
  },
  responses: { '2XX': { description: 'Received.' } },
};

const WEBHOOK_DESCRIPTION = [
  'Signed as Standard Webhooks say; their libraries verify it. Anything but a 2XX within 15 s, a redirect included, is',
  'tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, or later when Retry-After asks for that.',
  '410 disables the webhook, as do five days without a success.',
].join(' ');

const Id = Type.String({ description: 'Leads to the whole, and is the same in every attempt.' });
const VoiceId = Type.String({ format: 'uuid' });
const Failure = Type.String({ description: 'A stable code.' });
const Seconds = Type.Number({ description: 'Seconds of audio.' });
const VOICE = { voice_id: VoiceId, name: Type.String(), language: Type.String({ description: 'ISO 639-1.' }) };

/** What each event tells, as `WebhookEventData` has it. */
const EVENT_DATA: Readonly<Record<WebhookEvent, { summary: string; properties: Record<string, TSchema> }>> = {
  'tts.completed': {
    summary: 'Speech was synthesised',
    properties: { id: Id, text: Type.String(), voice_id: VoiceId, audio_url: Type.String(), duration: Seconds },
  },
  'tts.failed': { summary: 'Speech was not synthesised', properties: { id: Id, voice_id: VoiceId, error: Failure } },
  'stt.completed': {
    summary: 'Speech was transcribed',
    properties: {
      id: Id,
      text: Type.String(),
      language: Type.String({ description: 'ISO 639-1.' }),
      duration: Seconds,
      snr_db: nullable(Type.Number({ description: '15 or more is good, below 0 poor.' })),
      source: Type.Enum(['rest', 'websocket']),
    },
  },
  'stt.failed': { summary: 'Speech was not transcribed', properties: { id: Id, error: Failure } },
  'voice.created': { summary: 'A voice was created and is being prepared', properties: VOICE },
  'voice.ready': { summary: 'A voice can be used', properties: VOICE },
  'voice.failed': { summary: 'A voice could not be prepared', properties: { voice_id: VoiceId, error: Failure } },
};

/** What the server sends of its own accord: the `webhooks` of the document, by the name of the event. */
export const OPENAPI_WEBHOOKS = {
  callEnded: { post: CALL_ENDED },
  ...Object.fromEntries(WEBHOOK_EVENTS.map((event) => [event, { post: webhookOperation(event) }])),
};

function webhookOperation(event: WebhookEvent) {
  const { summary } = EVENT_DATA[event];
  return {
    operationId: event.replace(/\.(\w)/, (_dot, letter: string) => letter.toUpperCase()),
    tags: ['webhooks'],
    summary: `${summary}: sent to the webhooks that are subscribed to it`,
    description: WEBHOOK_DESCRIPTION,
    security: [],
    parameters: [
      header('webhook-id', 'The same in every attempt and replay, and for every webhook that gets the event.'),
      header('webhook-timestamp', 'Unix seconds of this attempt.'),
      header(
        'webhook-signature',
        'v1,<base64 HMAC-SHA256(key, id + "." + timestamp + "." + raw body)>; one per secret, parted by spaces.',
      ),
    ],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: webhookMessageSchema(event),
          example: { event, timestamp: TIME, data: WEBHOOK_EXAMPLES[event] },
        },
      },
    },
    responses: { '2XX': { description: 'Received.' } },
  };
}

/** What a receiver of webhooks gets. */
function webhookMessageSchema(event: WebhookEvent): TObject {
  return Type.Object({
    event: Type.Literal(event),
    timestamp: TimeSchema,
    data: Type.Object({
      ...EVENT_DATA[event].properties,
      test: Type.Optional(Type.Literal(true, { description: 'Sent by POST /webhooks/{id}/test.' })),
      truncated: Type.Optional(
        Type.Literal(true, { description: 'A text was cut to keep the body under 20 kB; `id` leads to the whole.' }),
      ),
    }),
  });
}

function header(name: string, description: string) {
  return { name, in: 'header' as const, required: true, description, schema: Type.String() };
}
