import { type TSchema, Type } from 'typebox';
import { nullable, TimeSchema } from './envelope.ts';
import { E164Schema } from './phone-number.ts';

export const CALL_STATES = ['pending', 'initiated', 'bridged', 'completed', 'failed', 'rejected', 'unknown'] as const;
export const CallStateSchema = Type.Enum([...CALL_STATES]);
const TERMINAL_EVENTS = ['call.completed', 'call.not_answered', 'call.failed', 'call.temporaryfailed'] as const;
const MetadataSchema = nullable(Type.Object({}, { additionalProperties: true }));
const LegSchema = Type.Enum(['agent', 'customer']);

const LegQualitySchema = Type.Object({
  codec: Type.String({ examples: ['PCMU'] }),
  packets_received: Type.Integer(),
  packets_lost: Type.Integer(),
  jitter_ms: Type.Number(),
  mos: nullable(Type.Number()),
  snr_db: nullable(Type.Number()),
});

const CALL_EXAMPLE = {
  call_id: '2f1f8c1e-5a53-4b1e-8a2b-0c6a1b9a7d10',
  reference_id: 'order-1042',
  outbound_trunk_id: '7d9f3a52-1c7b-4e0e-9f58-2f0d3f6f1b21',
  did: '+912240000001',
  agent_number: '+919812345678',
  customer_number: '+919876543210',
  state: 'initiated',
  call_done: false,
  terminal_event: null,
  hangup_cause: null,
  leg: null,
  error: null,
  error_detail: null,
  talk_seconds: null,
  total_seconds: null,
  start_time: '2026-01-31T09:30:00.120Z',
  answer_time: null,
  end_time: null,
  metadata: { order: 1042 },
  record_requested: true,
  recording_id: null,
  recording_status: null,
  recording_available: false,
  transcribe_requested: false,
  announce_requested: true,
  whisper_requested: false,
  callback_url: 'https://hooks.example.com/calls',
  callback_secret_last4: 'f3c1',
  cost_usd: null,
  speech_cost_usd: null,
  billing_status: null,
  placed_via: 'api_key',
  api_key_id: 7,
  api_key_name: 'CRM',
  created_by_user_id: 17,
  created_at: '2026-01-31T09:30:00.000Z',
  quality: null,
};

/** The same call once it is over. */
export const ENDED_CALL_EXAMPLE = {
  ...CALL_EXAMPLE,
  state: 'completed',
  call_done: true,
  terminal_event: 'call.completed',
  hangup_cause: 'NORMAL_CLEARING',
  talk_seconds: 94,
  total_seconds: 112,
  answer_time: '2026-01-31T09:30:18.400Z',
  end_time: '2026-01-31T09:31:52.300Z',
  recording_id: 'b3b2c7e0-4f7a-4b8f-9d61-5e0a9a1c2d33',
  recording_status: 'uploaded',
  recording_available: true,
  cost_usd: 0.094,
  speech_cost_usd: 0.000525,
  billing_status: 'billed',
  quality: {
    agent: { codec: 'PCMU', packets_received: 5592, packets_lost: 3, jitter_ms: 2.1, mos: 4.3, snr_db: 31.5 },
    customer: { codec: 'PCMA', packets_received: 4690, packets_lost: 0, jitter_ms: 1.4, mos: 4.4, snr_db: 27.2 },
  },
};

const CALL_PROPERTIES = {
  call_id: Type.String(),
  reference_id: Type.String(),
  outbound_trunk_id: Type.String({ format: 'uuid' }),
  did: E164Schema,
  agent_number: E164Schema,
  customer_number: E164Schema,
  state: CallStateSchema,
  call_done: Type.Boolean({ description: 'True once the outcome is final.' }),
  terminal_event: nullable(Type.Enum([...TERMINAL_EVENTS])),
  hangup_cause: nullable(Type.String({ examples: ['NORMAL_CLEARING'] })),
  leg: nullable(LegSchema),
  error: nullable(Type.String()),
  error_detail: nullable(Type.String()),
  talk_seconds: nullable(Type.Integer({ description: 'Bridged talk time; what is billed.' })),
  total_seconds: nullable(Type.Integer()),
  start_time: nullable(TimeSchema),
  answer_time: nullable(TimeSchema),
  end_time: nullable(TimeSchema),
  metadata: MetadataSchema,
  record_requested: Type.Boolean(),
  recording_id: nullable(Type.String()),
  recording_status: nullable(Type.String()),
  recording_available: Type.Boolean({ description: 'True when a playback URL can be minted.' }),
  transcribe_requested: Type.Boolean({ description: 'Beyond the specification.' }),
  announce_requested: Type.Boolean({ description: 'Beyond the specification, as the next.' }),
  whisper_requested: Type.Boolean(),
  callback_url: nullable(Type.String()),
  callback_secret_last4: nullable(Type.String()),
  cost_usd: nullable(Type.Number({ description: 'Of the talk.' })),
  speech_cost_usd: nullable(
    Type.Number({ description: 'Of what the agent was told, beside `cost_usd`. Beyond the specification.' }),
  ),
  billing_status: nullable(Type.Enum(['billed', 'failed'])),
  placed_via: Type.Enum(['api_key', 'session']),
  api_key_id: nullable(Type.Integer()),
  api_key_name: nullable(Type.String()),
  created_by_user_id: nullable(Type.Integer()),
  created_at: TimeSchema,
  quality: nullable(Type.Object({ agent: nullable(LegQualitySchema), customer: nullable(LegQualitySchema) })),
};

export const CallSchema = Type.Object(CALL_PROPERTIES, { examples: [CALL_EXAMPLE, ENDED_CALL_EXAMPLE] });

/** What a receiver of callbacks gets; `call` is the schema of the call, or a reference to it. */
export function callbackSchema(call: TSchema) {
  return Type.Object({
    event: Type.Enum([...TERMINAL_EVENTS]),
    event_id: Type.String({ description: 'The same in every attempt: repeats are told by it.' }),
    sequence: Type.Integer({ description: 'Position in the event log of the call.' }),
    timestamp: TimeSchema,
    call_id: Type.String(),
    reference_id: Type.String(),
    metadata: MetadataSchema,
    data: Type.Object({ call }),
  });
}

const SPOKEN_PROPERTIES = {
  text: Type.String({ examples: ['he was not an ill disposed young man'] }),
  start: Type.Number({ description: 'Seconds since the legs were bridged.' }),
  end: Type.Number(),
  confidence: nullable(Type.Number({ description: '0 to 1; null where the engine has none.' })),
};

const CALL_EVENT_PROPERTIES = {
  sequence: Type.Integer(),
  event: Type.String({
    description:
      'What happened to the call, its legs (`agent.`, `customer.`), its `recording.` or its `transcript.`, or what the agent was told: `announcement.started`, `announcement.finished`, `announcement.failed`, and the same of `whisper`. There may be others.',
    examples: ['call.initiated', 'announcement.failed', 'call.completed'],
  }),
  state: CallStateSchema,
  leg: nullable(LegSchema),
  sip_status: nullable(Type.Integer()),
  hangup_cause: nullable(Type.String()),
  at: TimeSchema,
  detail: nullable(Type.String()),
  transcript: nullable(
    Type.Object(SPOKEN_PROPERTIES, {
      description: 'With `transcript.final`: what the leg said. Null for whoever may not read the transcript.',
    }),
  ),
  delivery: nullable(
    Type.Object({
      status: Type.String({ examples: ['pending', 'delivered', 'failed'] }),
      attempts: Type.Integer(),
      last_http_status: nullable(Type.Integer()),
      next_attempt_at: nullable(TimeSchema),
    }),
  ),
};

export const CALL_EVENT_EXAMPLE = {
  sequence: 4,
  event: 'call.completed',
  state: 'completed',
  leg: 'customer',
  sip_status: null,
  hangup_cause: 'NORMAL_CLEARING',
  at: '2026-01-31T09:31:52.300Z',
  detail: null,
  transcript: null,
  delivery: { status: 'pending', attempts: 1, last_http_status: 503, next_attempt_at: '2026-01-31T09:31:57.300Z' },
};

export const CallEventSchema = Type.Object(CALL_EVENT_PROPERTIES, { examples: [CALL_EVENT_EXAMPLE] });

const WORD_EXAMPLE = { word: 'young', start: 4.1, end: 4.42, confidence: 0.93 };
const SEGMENT_EXAMPLE = {
  leg: 'customer',
  text: 'he was not an ill disposed young man',
  start: 2.31,
  end: 5.02,
  confidence: 0.88,
  language: 'en',
  words: [WORD_EXAMPLE],
};

export const TranscriptSchema = Type.Object(
  {
    call_id: Type.String(),
    status: Type.Enum(['none', 'in_progress', 'completed', 'failed'], {
      description: '`none`: it was not asked for, or nobody has talked so far.',
    }),
    error: nullable(
      Type.String({
        description:
          'When it failed: OVERLOADED (the recogniser cannot keep up), INSUFFICIENT_FUNDS, INTERRUPTED (the server stopped), LISTENING_LOST, MEDIA_LOST, or a code of the API. What was understood before that stands.',
        examples: ['OVERLOADED'],
      }),
    ),
    language: nullable(Type.String({ description: 'ISO 639-1 of what was said most.', examples: ['en'] })),
    segments: Type.Array(
      Type.Object({
        leg: LegSchema,
        ...SPOKEN_PROPERTIES,
        language: Type.String({ examples: ['en'] }),
        words: Type.Array(
          Type.Object({
            word: Type.String(),
            start: Type.Number(),
            end: Type.Number(),
            confidence: nullable(Type.Number()),
          }),
        ),
      }),
      { description: 'In the order in which they were said.' },
    ),
  },
  {
    examples: [
      {
        call_id: ENDED_CALL_EXAMPLE.call_id,
        status: 'completed',
        error: null,
        language: 'en',
        segments: [SEGMENT_EXAMPLE],
      },
    ],
  },
);

const PLAYBACK_URL_EXAMPLE =
  'https://voice.example.com/media/recordings/0b5c1c1e/b3b2c7e0.wav?expires=1769852112&signature=c2lnbmF0dXJl';
export const PlaybackUrlSchema = Type.String({ format: 'uri', examples: [PLAYBACK_URL_EXAMPLE] });

const RECORDING_PROPERTIES = {
  call_id: Type.String(),
  recording_id: Type.String(),
  recording_status: Type.String(),
  recording_format: nullable(Type.String({ examples: ['wav'] })),
  recording_size: nullable(Type.Integer({ description: 'Bytes.' })),
  playback_url: PlaybackUrlSchema,
  expires_at: TimeSchema,
};

export const RecordingSchema = Type.Object(RECORDING_PROPERTIES, {
  examples: [
    {
      call_id: ENDED_CALL_EXAMPLE.call_id,
      recording_id: ENDED_CALL_EXAMPLE.recording_id,
      recording_status: 'uploaded',
      recording_format: 'wav',
      recording_size: 3_008_044,
      playback_url: PLAYBACK_URL_EXAMPLE,
      expires_at: '2026-01-31T09:35:12.000Z',
    },
  ],
});
