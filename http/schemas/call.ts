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

export const CallSchema = Type.Object({
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
  callback_url: nullable(Type.String()),
  callback_secret_last4: nullable(Type.String()),
  cost_usd: nullable(Type.Number()),
  billing_status: nullable(Type.Enum(['billed', 'failed'])),
  placed_via: Type.Enum(['api_key', 'session']),
  api_key_id: nullable(Type.Integer()),
  api_key_name: nullable(Type.String()),
  created_by_user_id: nullable(Type.Integer()),
  created_at: TimeSchema,
  quality: nullable(Type.Object({ agent: nullable(LegQualitySchema), customer: nullable(LegQualitySchema) })),
});

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

export const CallEventSchema = Type.Object({
  sequence: Type.Integer(),
  event: Type.String({ examples: ['call.initiated', 'call.completed'] }),
  state: CallStateSchema,
  leg: nullable(LegSchema),
  sip_status: nullable(Type.Integer()),
  hangup_cause: nullable(Type.String()),
  at: TimeSchema,
  detail: nullable(Type.String()),
  delivery: nullable(
    Type.Object({
      status: Type.String({ examples: ['pending', 'delivered', 'failed'] }),
      attempts: Type.Integer(),
      last_http_status: nullable(Type.Integer()),
      next_attempt_at: nullable(TimeSchema),
    }),
  ),
});

export const RecordingSchema = Type.Object({
  call_id: Type.String(),
  recording_id: Type.String(),
  recording_status: Type.String(),
  recording_format: nullable(Type.String({ examples: ['wav'] })),
  recording_size: nullable(Type.Integer({ description: 'Bytes.' })),
  playback_url: Type.String({ format: 'uri' }),
  expires_at: TimeSchema,
});
