import { type Static, Type } from 'typebox';
import type { InboundRule } from '../../storage/queries/inbound-rules.ts';
import { validationFailed } from '../validation.ts';
import { EndpointSchema, readEndpoint } from './endpoint.ts';
import { nullable } from './envelope.ts';
import type { NumberPlan } from './phone-number.ts';

const FORWARD_EXAMPLE = { action: 'forward', endpoint: { type: 'phone', number: '+919812345678' }, record: true };

const OPTIONS = {
  ring_timeout: Type.Integer({ minimum: 5, maximum: 60, description: 'Seconds to ring the endpoint.' }),
  max_duration: Type.Integer({ minimum: 30, maximum: 7200, description: 'Longest talk, in seconds.' }),
  record: Type.Boolean({ description: 'Record the call.' }),
  transcribe: Type.Boolean({ description: 'Transcribe the call.' }),
};

export const InboundRuleBody = Type.Object(
  {
    action: Type.Enum(['reject', 'forward'], {
      description: '`reject`: calls are declined. `forward`: they are connected with `endpoint`.',
    }),
    endpoint: Type.Optional(EndpointSchema),
    ring_timeout: Type.Optional({ ...OPTIONS.ring_timeout, default: 30 }),
    max_duration: Type.Optional({ ...OPTIONS.max_duration, default: 3600 }),
    record: Type.Optional({ ...OPTIONS.record, default: false }),
    transcribe: Type.Optional({ ...OPTIONS.transcribe, default: false }),
    announce: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description:
          'Text or SSML to play to the endpoint when it answers, before the caller is connected. Billed when it begins.',
        examples: ['Call for the sales team.'],
      }),
    ),
    voice_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: 'Voice for `announce`: an id from GET /voices.' }),
    ),
  },
  { additionalProperties: false, examples: [FORWARD_EXAMPLE] },
);

/** As a number shows it: with its defaults. */
export const InboundRuleSchema = nullable(
  Type.Object(
    {
      action: InboundRuleBody.properties.action,
      endpoint: Type.Optional(EndpointSchema),
      ring_timeout: Type.Optional(OPTIONS.ring_timeout),
      max_duration: Type.Optional(OPTIONS.max_duration),
      record: Type.Optional(OPTIONS.record),
      transcribe: Type.Optional(OPTIONS.transcribe),
      announce: Type.Optional(nullable(Type.String())),
      voice_id: Type.Optional(nullable(Type.String())),
    },
    {
      description: 'Rule for calls to the number. Null: they are refused. Tandem extension.',
      examples: [FORWARD_EXAMPLE],
    },
  ),
);

/** @throws TandemError VALIDATION_FAILED */
export function readInboundRule(
  body: Static<typeof InboundRuleBody>,
  { ownUserId, numberPlan }: { ownUserId: number | null; numberPlan: NumberPlan },
): InboundRule {
  const { action, endpoint, announce = null, voice_id: voiceId = null, ...options } = body;
  if (action === 'reject') {
    const extra = Object.keys(body).find((field) => field !== 'action');
    if (extra !== undefined) throw validationFailed([{ path: extra, message: 'must not be combined with reject' }]);
    return { action };
  }
  if (endpoint === undefined) throw validationFailed([{ path: 'endpoint', message: 'is required with forward' }]);
  const { ring_timeout = 30, max_duration = 3600, record = false, transcribe = false } = options;
  return {
    action,
    endpoint: readEndpoint(endpoint, { ownUserId, numberPlan }),
    ringTimeoutS: ring_timeout,
    maxDurationS: max_duration,
    ...{ record, transcribe, announce, voiceId },
  };
}

export function presentInboundRule(rule: InboundRule | null): Static<typeof InboundRuleSchema> {
  if (rule === null || rule.action === 'reject') return rule;
  const { action, endpoint, ringTimeoutS, maxDurationS, record, transcribe, announce, voiceId } = rule;
  return {
    action,
    endpoint: endpoint.type === 'phone' ? endpoint : { type: 'webrtc', user_id: endpoint.userId },
    ring_timeout: ringTimeoutS,
    max_duration: maxDurationS,
    ...{ record, transcribe, announce, voice_id: voiceId },
  };
}
