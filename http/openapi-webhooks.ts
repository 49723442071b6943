import { type TObject, type TSchema, Type } from 'typebox';
import { WEBHOOK_EVENTS, WEBHOOK_EXAMPLES, type WebhookEvent } from '../storage/queries/webhook-events.ts';
import { callbackSchema, ENDED_CALL_EXAMPLE } from './schemas/call.ts';
import { nullable, TimeSchema } from './schemas/envelope.ts';

const TIME = '2026-01-31T09:31:52.300Z';

const CALL_ENDED = {
  operationId: 'callEnded',
  tags: ['click-to-call'],
  summary: 'A call has ended',
  description:
    'Sent to the `callback_url` of the call, signed with its `callback_secret`. Any response other than 2XX, including redirects, is retried, except 410.',
  security: [],
  parameters: [
    header('x-qcall-signature', 't=<unix seconds>,v1=<hex HMAC-SHA256(callback_secret, t + "." + raw body)>'),
    header('webhook-id', 'Id of the message, the same in every attempt (Standard Webhooks).'),
    header('webhook-timestamp', 'Time of this attempt, in Unix seconds.'),
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
  responses: { '2XX': { description: 'Accepted.' } },
};

const WEBHOOK_DESCRIPTION = [
  'Sent to subscribed webhooks and signed as specified by Standard Webhooks, so its libraries can verify it. Any response',
  'other than 2XX within 15 s, including redirects, is retried after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, or later',
  'if Retry-After says so. A 410 response disables the webhook, and so do five days without success.',
].join(' ');

const Id = Type.String({ description: 'Id of the resource, the same in every attempt.' });
const VoiceId = Type.String({ format: 'uuid', description: 'Id of the voice.' });
const Failure = Type.String({ description: 'Stable error code.' });
const Seconds = Type.Number({ description: 'Length of the audio, in seconds.' });
const Language = Type.String({ description: 'ISO 639-1 code.' });
const VOICE = { voice_id: VoiceId, name: Type.String({ description: 'Display name.' }), language: Language };
const TRUNK = {
  trunk_id: Type.String({ format: 'uuid', description: 'Id of the trunk.' }),
  name: Type.String({ description: 'Display name of the trunk.' }),
  reason: Type.String({ description: '`reachability.reason` of the trunk.' }),
  since: { ...TimeSchema, description: 'When the state changed.' },
};

const CALL = {
  call_id: Type.String({ description: 'Id of the call.' }),
  reference_id: Type.String({ description: 'Reference of the call.' }),
  sequence: Type.Integer({
    description: 'Position in the event log of the call. Deliveries can arrive in any order; sort them by this.',
  }),
  state: Type.String({ description: 'State of the call after the event.' }),
  direction: Type.Enum(['outbound', 'inbound'], { description: 'Direction of the call.' }),
  leg: nullable(Type.Enum(['agent', 'customer'], { description: 'Leg that rang, answered or ended the call.' })),
  sip_status: nullable(Type.Integer({ description: 'SIP status of the leg.' })),
  hangup_cause: nullable(Type.String({ description: 'Why the call ended.' })),
  metadata: nullable(Type.Object({}, { additionalProperties: true, description: 'Metadata of the call.' })),
};

/** Summary and data of each event, matching `WebhookEventData`. */
const EVENT_DATA: Readonly<Record<WebhookEvent, { summary: string; properties: Record<string, TSchema> }>> = {
  'tts.completed': {
    summary: 'Speech was synthesised',
    properties: {
      id: Id,
      text: Type.String({ description: 'Synthesised text.' }),
      voice_id: VoiceId,
      audio_url: Type.String({ description: 'Signed URL of the audio.' }),
      duration: Seconds,
    },
  },
  'tts.failed': { summary: 'Speech synthesis failed', properties: { id: Id, voice_id: VoiceId, error: Failure } },
  'stt.completed': {
    summary: 'Audio was transcribed',
    properties: {
      id: Id,
      text: Type.String({ description: 'Transcript.' }),
      language: Language,
      duration: Seconds,
      snr_db: nullable(
        Type.Number({
          description: 'Signal-to-noise ratio in dB. 15 or more is good, 0 to 15 fair, below 0 poor.',
        }),
      ),
      source: Type.Enum(['rest', 'websocket'], { description: 'API that transcribed the audio.' }),
    },
  },
  'stt.failed': { summary: 'Transcription failed', properties: { id: Id, error: Failure } },
  'voice.created': { summary: 'A voice was created and is being processed', properties: VOICE },
  'voice.ready': { summary: 'A voice is ready to use', properties: VOICE },
  'voice.failed': { summary: 'Processing a voice failed', properties: { voice_id: VoiceId, error: Failure } },
  'trunk.down': { summary: 'The carrier of a trunk stopped responding', properties: TRUNK },
  'trunk.up': { summary: 'The carrier of a trunk responds again', properties: TRUNK },
  'call.initiated': { summary: 'The agent of a call is being dialed', properties: CALL },
  'call.ringing': { summary: 'The phone of a leg rings', properties: CALL },
  'call.answered': { summary: 'The agent has answered', properties: CALL },
  'call.bridged': { summary: 'The customer has answered, and both talk', properties: CALL },
  'call.completed': { summary: 'A call has ended after a talk', properties: CALL },
  'call.not_answered': { summary: 'A call has ended because a leg did not answer', properties: CALL },
  'call.failed': { summary: 'A call has failed', properties: CALL },
  'call.temporaryfailed': { summary: 'A call has failed and may succeed later', properties: CALL },
};

/** The document's `webhooks`, by event. */
export const OPENAPI_WEBHOOKS = {
  callEnded: { post: CALL_ENDED },
  ...Object.fromEntries(WEBHOOK_EVENTS.map((event) => [event, { post: webhookOperation(event) }])),
};

function webhookOperation(event: WebhookEvent) {
  const { summary } = EVENT_DATA[event];
  return {
    operationId: event.replace(/[._](\w)/g, (_dot, letter: string) => letter.toUpperCase()),
    tags: ['webhooks'],
    summary,
    description: WEBHOOK_DESCRIPTION,
    security: [],
    parameters: [
      header('webhook-id', 'Id of the event, the same in every attempt and replay and for every webhook.'),
      header('webhook-timestamp', 'Time of this attempt, in Unix seconds.'),
      header(
        'webhook-signature',
        'v1,<base64 HMAC-SHA256(key, id + "." + timestamp + "." + raw body)>. One per secret, separated by spaces.',
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
    responses: { '2XX': { description: 'Accepted.' } },
  };
}

function webhookMessageSchema(event: WebhookEvent): TObject {
  return Type.Object({
    event: Type.Literal(event),
    timestamp: TimeSchema,
    data: Type.Object({
      ...EVENT_DATA[event].properties,
      test: Type.Optional(Type.Literal(true, { description: 'True if POST /webhooks/{id}/test sent the event.' })),
      truncated: Type.Optional(
        Type.Literal(true, {
          description:
            'True if a text was truncated to keep the body under 20 kB. Get the resource for the whole text.',
        }),
      ),
    }),
  });
}

function header(name: string, description: string) {
  return { name, in: 'header' as const, required: true, description, schema: Type.String() };
}
