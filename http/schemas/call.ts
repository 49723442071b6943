import { type TObject, type TSchema, Type } from 'typebox';
import { nullable, TimeSchema } from './envelope.ts';
import { E164Schema } from './phone-number.ts';

export const CallNameSchema = Type.String({ description: 'call_id or reference_id of the call.' });
/** Path parameters of a route below one call. */
export const CallParams = Type.Object({ id: CallNameSchema });

export const CALL_STATES = ['pending', 'initiated', 'bridged', 'completed', 'failed', 'rejected', 'unknown'] as const;
export const CallStateSchema = Type.Enum([...CALL_STATES], {
  description:
    '`pending`: accepted, not dialed yet. `initiated`: dialing the agent, then the customer. `bridged`: both parties talk. `completed`, `failed` and `rejected` are final. `unknown`: the outcome could not be determined.',
});
const TERMINAL_EVENTS = ['call.completed', 'call.not_answered', 'call.failed', 'call.temporaryfailed'] as const;
const MetadataSchema = nullable(
  Type.Object({}, { additionalProperties: true, description: 'The metadata sent when the call was placed.' }),
);
const LegSchema = Type.Enum(['agent', 'customer']);

const LEG_QUALITY_PROPERTIES = {
  codec: Type.String({ description: 'Negotiated RTP codec.', examples: ['PCMU'] }),
  packets_received: Type.Integer({ description: 'RTP packets received from the leg.' }),
  packets_lost: Type.Integer({ description: 'RTP packets lost on the way from the leg.' }),
  jitter_ms: Type.Number({ description: 'Interarrival jitter (RFC 3550), in milliseconds.' }),
  mos: nullable(Type.Number({ description: 'Estimated mean opinion score, 1 (bad) to 5 (excellent).' })),
  snr_db: nullable(
    Type.Number({ description: 'Signal-to-noise ratio in dB. 15 or more is good, 0 to 15 fair, below 0 poor.' }),
  ),
  encryption: nullable(
    Type.Enum(['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32', 'AEAD_AES_128_GCM', 'AEAD_AES_256_GCM'], {
      description: 'SRTP crypto suite that the leg used last. Null for a leg with plain RTP.',
    }),
  ),
};
const LegQualitySchema = Type.Object(LEG_QUALITY_PROPERTIES);

const LEG_STATES = ['dialing', 'ringing', 'answered', 'held', 'ended'] as const;
const SUPERVISION_MODES = ['listen', 'whisper', 'barge'] as const;

export const LEG_EXAMPLE = {
  leg_id: 'leg_5f0c7a1e-2b8d-4f6a-9f58-2f0d3f6f1b21',
  role: 'party',
  endpoint: { type: 'phone', number: '+919800000003' },
  state: 'dialing',
  muted: false,
  mode: null,
  joined_at: null,
  left_at: null,
  hangup_cause: null,
  quality: null,
};

export const SupervisionModeSchema = Type.Enum([...SUPERVISION_MODES], {
  description:
    '`listen`: no party hears the supervisor. `whisper`: only the agent does. `barge`: all parties do. The supervisor always hears all parties.',
});

export const LegObjectSchema = Type.Object(
  {
    leg_id: Type.String({ description: '`agent`, `customer`, or the id of a leg that was added.' }),
    role: Type.Enum(['agent', 'customer', 'party', 'supervisor'], { description: 'Role of the leg.' }),
    endpoint: Type.Object(
      {
        type: Type.Enum(['phone', 'webrtc'], { description: 'Kind of endpoint: a phone, or the browser of a user.' }),
        number: Type.Optional(
          nullable({
            ...E164Schema,
            description: 'Phone number in E.164 format. Null for a supervisor, and for a caller without one.',
          }),
        ),
        user_id: Type.Optional(nullable(Type.Integer({ description: 'User of the browser. Null for a supervisor.' }))),
      },
      { description: 'Endpoint that was dialed.' },
    ),
    state: Type.Enum([...LEG_STATES], { description: 'State of the leg. `held`: the leg was put on hold here.' }),
    muted: Type.Boolean({ description: 'True if the other legs do not hear this leg.' }),
    mode: nullable({ ...SupervisionModeSchema, description: 'Mode of a supervisor. Null for other legs.' }),
    joined_at: nullable({ ...TimeSchema, description: 'When the leg answered.' }),
    left_at: nullable({ ...TimeSchema, description: 'When the leg ended.' }),
    hangup_cause: nullable(Type.String({ description: 'Cause of the end of the leg.', examples: ['NORMAL_CLEARING'] })),
    quality: nullable(
      Type.Object(LEG_QUALITY_PROPERTIES, {
        description: 'Media quality of the leg. Null until the call has ended, and for a leg without media.',
      }),
    ),
  },
  { description: 'A leg of a call.', examples: [LEG_EXAMPLE] },
);

const CALL_EXAMPLE = {
  call_id: '2f1f8c1e-5a53-4b1e-8a2b-0c6a1b9a7d10',
  reference_id: 'order-1042',
  outbound_trunk_id: '7d9f3a52-1c7b-4e0e-9f58-2f0d3f6f1b21',
  did: '+912240000001',
  agent_number: '+919812345678',
  customer_number: '+919876543210',
  direction: 'outbound',
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
  legs_cost_usd: null,
  speech_cost_usd: null,
  billing_status: null,
  placed_via: 'api_key',
  api_key_id: 7,
  api_key_name: 'CRM',
  created_by_user_id: 17,
  created_at: '2026-01-31T09:30:00.000Z',
  legs: [{ ...LEG_EXAMPLE, leg_id: 'agent', role: 'agent', endpoint: { type: 'phone', number: '+919812345678' } }],
  quality: null,
};

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
    agent: {
      codec: 'PCMU',
      packets_received: 5592,
      packets_lost: 3,
      jitter_ms: 2.1,
      mos: 4.3,
      snr_db: 31.5,
      encryption: null,
    },
    customer: {
      codec: 'PCMA',
      packets_received: 4690,
      packets_lost: 0,
      jitter_ms: 1.4,
      mos: 4.4,
      snr_db: 27.2,
      encryption: 'AES_CM_128_HMAC_SHA1_80',
    },
  },
};

const CALL_PROPERTIES = {
  call_id: Type.String({ description: 'Id that the platform assigned to the call.' }),
  reference_id: Type.String({ description: 'Your idempotency key, or a generated `qc2c-<uuid>`.' }),
  outbound_trunk_id: Type.String({ format: 'uuid', description: 'Trunk that carries both legs.' }),
  did: { ...E164Schema, description: 'Caller ID on both legs, in E.164 format.' },
  agent_number: nullable({
    ...E164Schema,
    description: 'Number dialed first, in E.164 format. Null when the agent is a browser (`agent_endpoint`).',
  }),
  customer_number: nullable({
    ...E164Schema,
    description:
      'Number dialed after the agent answers, in E.164 format. For an inbound call, the number of the caller: null if the caller withheld it or the carrier sent none that can be read.',
  }),
  direction: Type.Enum(['outbound', 'inbound'], {
    description: '`inbound`: the customer has called `did`. `outbound`: the call was placed here. Tandem extension.',
  }),
  state: CallStateSchema,
  call_done: Type.Boolean({ description: 'True once the outcome is final.' }),
  terminal_event: nullable(
    Type.Enum([...TERMINAL_EVENTS], { description: 'Event that ended the call. Null while it is live.' }),
  ),
  hangup_cause: nullable(
    Type.String({
      description: 'Why the call ended, such as `NO_ANSWER`, `USER_BUSY`, `MAX_DURATION` or `INSUFFICIENT_FUNDS`.',
      examples: ['NORMAL_CLEARING'],
    }),
  ),
  leg: nullable({ ...LegSchema, description: 'On failure, the leg that failed.' }),
  error: nullable(Type.String({ description: 'On failure, a machine-readable error code.' })),
  error_detail: nullable(
    Type.String({ description: 'On failure, or when a machine answered, a human-readable explanation.' }),
  ),
  talk_seconds: nullable(Type.Integer({ description: 'Seconds both parties were bridged. This is the billed time.' })),
  total_seconds: nullable(Type.Integer({ description: 'Seconds from admission to the end of the call.' })),
  start_time: nullable({ ...TimeSchema, description: 'When dialing started.' }),
  answer_time: nullable({ ...TimeSchema, description: 'When the two legs were bridged.' }),
  end_time: nullable({ ...TimeSchema, description: 'When the call ended.' }),
  metadata: MetadataSchema,
  record_requested: Type.Boolean({ description: 'True if the call was placed with `record: true`.' }),
  recording_id: nullable(Type.String({ description: 'Id of the recording, once there is one.' })),
  recording_status: nullable(Type.String({ description: 'Status of the recording, such as `uploaded` or `deleted`.' })),
  recording_available: Type.Boolean({ description: 'True if you can create a playback URL.' }),
  transcribe_requested: Type.Boolean({
    description: 'True if the call was placed with `transcribe: true`. Tandem extension.',
  }),
  announce_requested: Type.Boolean({ description: 'True if the call was placed with `announce`. Tandem extension.' }),
  whisper_requested: Type.Boolean({ description: 'True if the call was placed with `whisper`. Tandem extension.' }),
  callback_url: nullable(Type.String({ description: 'URL that receives the terminal event.' })),
  callback_secret_last4: nullable(Type.String({ description: 'Last four characters of the callback secret.' })),
  cost_usd: nullable(Type.Number({ description: 'Charge for the talk time, in USD. Null if nothing was billed.' })),
  legs_cost_usd: nullable(
    Type.Number({ description: 'Charge for the legs that were added to the talk, in USD. Tandem extension.' }),
  ),
  speech_cost_usd: nullable(
    Type.Number({
      description: 'Charge for `announce` and `whisper`, in USD, in addition to `cost_usd`. Tandem extension.',
    }),
  ),
  billing_status: nullable(
    Type.Enum(['billed', 'failed'], { description: 'Result of billing. Null when nothing was owed.' }),
  ),
  placed_via: Type.Enum(['api_key', 'session', 'inbound'], {
    description: 'Kind of credentials that placed the call. `inbound`: none, the customer has called.',
  }),
  api_key_id: nullable(Type.Integer({ description: 'API key that placed the call.' })),
  api_key_name: nullable(Type.String({ description: 'Name of that key when the call was placed.' })),
  created_by_user_id: nullable(Type.Integer({ description: 'User who placed the call.' })),
  created_at: { ...TimeSchema, description: 'When the call was placed.' },
  legs: Type.Array(LegObjectSchema, {
    description: 'Legs in the order in which they were dialed. Empty for calls of earlier versions. Tandem extension.',
  }),
  quality: nullable(
    Type.Object(
      { agent: nullable(LegQualitySchema), customer: nullable(LegQualitySchema) },
      { description: 'Media quality of agent and customer. Null until it has been measured. Tandem extension.' },
    ),
  ),
};

export const CallSchema = Type.Object(CALL_PROPERTIES, { examples: [CALL_EXAMPLE, ENDED_CALL_EXAMPLE] });

/** Callback body. `call` is the schema of the call, or a reference to it. */
export function callbackSchema(call: TSchema): TObject {
  return Type.Object({
    event: Type.Enum([...TERMINAL_EVENTS]),
    event_id: Type.String({ description: 'Id of the event, the same in every attempt. Use it to drop duplicates.' }),
    sequence: Type.Integer({ description: "Position in the call's event log." }),
    timestamp: TimeSchema,
    call_id: Type.String(),
    reference_id: Type.String(),
    metadata: MetadataSchema,
    data: Type.Object({ call }),
  });
}

const SPOKEN_PROPERTIES = {
  text: Type.String({ description: 'Transcribed text.', examples: ['he was not an ill disposed young man'] }),
  start: Type.Number({ description: 'Start, in seconds since the legs were bridged.' }),
  end: Type.Number({ description: 'End, in seconds since the legs were bridged.' }),
  confidence: nullable(Type.Number({ description: 'Confidence, 0 to 1. Null if the engine reports none.' })),
};

const CALL_EVENT_PROPERTIES = {
  sequence: Type.Integer({ description: "Position in the call's event log, from 1." }),
  event: Type.String({
    description:
      'Event type. The prefix names its subject: `call.`, `agent.`, `customer.`, `recording.`, `transcript.`, `dtmf.`, `machine.`, `announcement.` or `whisper.` (the last two with `started`, `finished` and `failed`). Ignore types you do not know.',
    examples: ['call.initiated', 'announcement.failed', 'call.completed'],
  }),
  state: CallStateSchema,
  leg: nullable({ ...LegSchema, description: 'Leg that the event concerns.' }),
  sip_status: nullable(Type.Integer({ description: 'SIP status code, if a SIP response caused the event.' })),
  hangup_cause: nullable(Type.String({ description: 'Why the call or the leg ended.' })),
  at: { ...TimeSchema, description: 'When the event happened.' },
  detail: nullable(Type.String({ description: 'Human-readable detail.' })),
  data: nullable(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'Further details of the event: `digit` on `dtmf.received`, `digits` on `dtmf.sent`, `music` on `call.held`, `result` (`human`, `machine`, `beep`, `fax` or `unknown`) and `after_ms` on `machine.detected`. Null for other events. Tandem extension.',
        examples: [{ digit: '5' }],
      },
    ),
  ),
  transcript: nullable(
    Type.Object(SPOKEN_PROPERTIES, {
      description: 'Transcribed speech, on `transcript.final`. Null if you may not read the transcript.',
    }),
  ),
  delivery: nullable(
    Type.Object(
      {
        status: Type.String({ examples: ['pending', 'delivered', 'failed'] }),
        attempts: Type.Integer({ description: 'Attempts so far.' }),
        last_http_status: nullable(Type.Integer({ description: 'HTTP status of the last attempt.' })),
        next_attempt_at: nullable({ ...TimeSchema, description: 'When the next attempt is due.' }),
      },
      { description: 'Delivery of the callback. Null for events that are not sent to `callback_url`.' },
    ),
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
  data: null,
  transcript: null,
  delivery: { status: 'pending', attempts: 1, last_http_status: 503, next_attempt_at: '2026-01-31T09:31:57.300Z' },
};

export const CallEventSchema = Type.Object(CALL_EVENT_PROPERTIES, { examples: [CALL_EVENT_EXAMPLE] });

const WORD_EXAMPLE = { word: 'young', start: 4.1, end: 4.42, confidence: 0.93 };
const SEGMENT_EXAMPLE = {
  leg: 'customer',
  role: 'customer',
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
      description: '`none`: transcription was not requested, or there has been no speech yet.',
    }),
    error: nullable(
      Type.String({
        description:
          'On failure: OVERLOADED (the recogniser cannot keep up), INSUFFICIENT_FUNDS, INTERRUPTED (the server stopped), LISTENING_LOST, MEDIA_LOST, or an API error code. Segments transcribed before the failure remain.',
        examples: ['OVERLOADED'],
      }),
    ),
    language: nullable(Type.String({ description: 'Most spoken language, as an ISO 639-1 code.', examples: ['en'] })),
    segments: Type.Array(
      Type.Object({
        leg: Type.String({ description: '`agent`, `customer`, or the `leg_id` of a leg that was added.' }),
        role: Type.Enum(['agent', 'customer', 'party', 'supervisor'], { description: 'Role of the leg.' }),
        ...SPOKEN_PROPERTIES,
        language: Type.String({ description: 'ISO 639-1 code.', examples: ['en'] }),
        words: Type.Array(
          Type.Object({
            word: Type.String(),
            start: Type.Number({ description: 'Start, in seconds since the legs were bridged.' }),
            end: Type.Number({ description: 'End, in seconds since the legs were bridged.' }),
            confidence: nullable(Type.Number({ description: 'Confidence, 0 to 1.' })),
          }),
        ),
      }),
      { description: 'Segments in chronological order.' },
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
export const PlaybackUrlSchema = Type.String({
  format: 'uri',
  description: 'Signed URL of the audio. Anyone who has it can play the audio until it expires.',
  examples: [PLAYBACK_URL_EXAMPLE],
});

export const PeaksUrlSchema = nullable(
  Type.String({
    format: 'uri',
    description:
      'Signed URL of the peaks, for players that draw a waveform: JSON of audiowaveform version 2, 100 points a second, least and greatest sample per channel in 8 bits. Null while they are being computed. Tandem extension.',
    examples: [PLAYBACK_URL_EXAMPLE.replace('.wav', '.peaks.json')],
  }),
);

const RECORDING_PROPERTIES = {
  call_id: Type.String({ description: 'Call that was recorded.' }),
  recording_id: Type.String({ description: 'Id of the recording.' }),
  recording_status: Type.String({ description: 'Status of the recording, such as `uploaded`.' }),
  recording_format: nullable(Type.String({ description: 'Audio format: `wav`, `mp3` or `opus`.', examples: ['wav'] })),
  recording_channels: Type.Enum(['stereo', 'mono'], { description: 'Channels of the audio. Tandem extension.' }),
  recording_size: nullable(Type.Integer({ description: 'Size in bytes, in this format.' })),
  recording_duration_ms: nullable(Type.Integer({ description: 'Duration in milliseconds. Tandem extension.' })),
  playback_url: PlaybackUrlSchema,
  expires_at: { ...TimeSchema, description: 'When the URLs expire.' },
  peaks_url: PeaksUrlSchema,
};

export const RecordingSchema = Type.Object(RECORDING_PROPERTIES, {
  examples: [
    {
      call_id: ENDED_CALL_EXAMPLE.call_id,
      recording_id: ENDED_CALL_EXAMPLE.recording_id,
      recording_status: 'uploaded',
      recording_format: 'wav',
      recording_channels: 'stereo',
      recording_size: 3_008_044,
      recording_duration_ms: 94_000,
      playback_url: PLAYBACK_URL_EXAMPLE,
      expires_at: '2026-01-31T09:35:12.000Z',
      peaks_url: PLAYBACK_URL_EXAMPLE.replace('.wav', '.peaks.json'),
    },
  ],
});
