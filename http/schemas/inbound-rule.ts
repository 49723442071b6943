import { type Static, type TSchema, Type } from 'typebox';
import type { TandemError } from '../../machines/errors.ts';
import type { ForwardRule, InboundDecision, InboundRule } from '../../storage/queries/inbound-rules.ts';
import { last4Of } from '../../storage/secrets.ts';
import { compileCheck, validationFailed } from '../validation.ts';
import { EndpointSchema, readEndpoint } from './endpoint.ts';
import { nullable } from './envelope.ts';
import type { NumberPlan } from './phone-number.ts';

const FORWARD_EXAMPLE = { action: 'forward', endpoint: { type: 'phone', number: '+919812345678' }, record: true };
const SECRET = { minLength: 16, maxLength: 256 };

const OPTIONS = {
  ring_timeout: Type.Integer({ minimum: 5, maximum: 60, description: 'Seconds to ring the endpoint.' }),
  max_duration: Type.Integer({ minimum: 30, maximum: 7200, description: 'Longest talk, in seconds.' }),
  record: Type.Boolean({ description: 'Record the call.' }),
  transcribe: Type.Boolean({ description: 'Transcribe the call.' }),
};

/** Fields of `forward`, and of the fallback of `ask`. */
const FORWARD_FIELDS = {
  endpoint: Type.Optional(EndpointSchema),
  to: Type.Optional({ ...EndpointSchema, description: 'Another name of `endpoint`. Responses name it `endpoint`.' }),
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
};

/** Response of an `ask` URL, or its fallback. */
const DecisionBody = Type.Object(
  {
    action: Type.Enum(['reject', 'forward'], {
      description: '`reject`: the call is declined. `forward`: it is connected with `endpoint`.',
    }),
    ...FORWARD_FIELDS,
  },
  { additionalProperties: false, examples: [{ action: 'reject' }] },
);
type Decision = Static<typeof DecisionBody>;

export const InboundRuleBody = Type.Object(
  {
    action: Type.Enum(['reject', 'forward', 'ask'], {
      description:
        '`reject`: calls are declined. `forward`: they are connected with `endpoint`. `ask`: `url` decides about each call.',
    }),
    ...FORWARD_FIELDS,
    callback_url: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'For `forward`. Public HTTPS URL that receives the terminal event. Requires `callback_secret`.',
      }),
    ),
    callback_secret: Type.Optional(
      Type.String({ ...SECRET, writeOnly: true, description: 'Secret that signs the callbacks.' }),
    ),
    url: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'For `ask`. Public HTTPS URL. It has three seconds to answer with a decision, such as a fallback.',
        examples: ['https://example.com/inbound'],
      }),
    ),
    secret: Type.Optional(
      Type.String({
        ...SECRET,
        writeOnly: true,
        description: 'For `ask`. Secret that signs the requests to `url`, as for callbacks.',
      }),
    ),
    fallback: Type.Optional(DecisionBody),
  },
  { additionalProperties: false, examples: [FORWARD_EXAMPLE] },
);
type RuleBody = Static<typeof InboundRuleBody>;

const SHOWN_FORWARD: Record<string, TSchema> = {
  endpoint: Type.Optional(EndpointSchema),
  ring_timeout: Type.Optional(OPTIONS.ring_timeout),
  max_duration: Type.Optional(OPTIONS.max_duration),
  record: Type.Optional(OPTIONS.record),
  transcribe: Type.Optional(OPTIONS.transcribe),
  announce: Type.Optional(nullable(Type.String())),
  voice_id: Type.Optional(nullable(Type.String())),
};

/** Rule as shown with a number: with defaults and the end of its secret. */
export const InboundRuleSchema = nullable(
  Type.Object(
    {
      action: InboundRuleBody.properties.action,
      ...SHOWN_FORWARD,
      callback_url: Type.Optional(nullable(Type.String())),
      url: Type.Optional(Type.String()),
      secret_last4: Type.Optional(Type.String({ description: 'Last four characters of `secret`.' })),
      fallback: Type.Optional(Type.Object({ action: DecisionBody.properties.action, ...SHOWN_FORWARD })),
    },
    {
      description: 'Rule for calls to the number. Null: they are refused. Tandem extension.',
      examples: [FORWARD_EXAMPLE],
    },
  ),
);

export interface ReadRuleOptions {
  /** User of the request; null for a URL's response, which has no user. */
  ownUserId: number | null;
  numberPlan: NumberPlan;
}

export interface RuleChecks {
  /** Base64. */
  seal(secret: string): string;
  /** Returns the URL as it will be requested. @throws TandemError INVALID_CALLBACK_URL */
  checkUrl(url: string, field: string): Promise<string>;
  /** @throws TandemError INVALID_ANNOUNCE, VOICE_NOT_FOUND, VOICE_NOT_READY */
  checkSpeech(speech: Pick<ForwardRule, 'announce' | 'voiceId'>): Promise<void>;
}

/**
 * @throws TandemError VALIDATION_FAILED, INVALID_CALLBACK_URL, INVALID_ANNOUNCE, VOICE_NOT_FOUND, VOICE_NOT_READY
 */
export async function readInboundRule(
  body: RuleBody,
  options: ReadRuleOptions,
  { seal, checkUrl, checkSpeech }: RuleChecks,
): Promise<InboundRule> {
  const { action, url, secret, fallback, callback_url: callbackUrl, callback_secret: callbackSecret, ...rest } = body;
  if (action === 'ask') {
    requireOnly(body, ['url', 'secret', 'fallback']);
    if (url === undefined) throw invalid('url', 'is required with ask');
    if (secret === undefined) throw invalid('secret', 'is required with ask');
    const decision = fallback === undefined ? REJECT : readDecision(fallback, options, 'fallback.');
    if (decision.action === 'forward') await checkSpeech(decision);
    return {
      action,
      url: await checkUrl(url, 'url'),
      secretSealed: seal(secret),
      secretLast4: last4Of(secret),
      fallback: decision,
    };
  }
  if (action === 'reject') requireOnly(body, []);
  const asked = Object.entries({ url, secret, fallback }).find(([, value]) => value !== undefined);
  if (asked !== undefined) throw invalid(asked[0], `must not be combined with ${action}`);
  const decision = readDecision({ ...rest, action }, options);
  if (decision.action === 'forward') await checkSpeech(decision);
  if (decision.action === 'reject' || (callbackUrl === undefined && callbackSecret === undefined)) return decision;
  if (callbackUrl === undefined) throw invalid('callback_url', 'is required with callback_secret');
  if (callbackSecret === undefined) throw invalid('callback_secret', 'is required with callback_url');
  const checked = await checkUrl(callbackUrl, 'callback_url');
  return { ...decision, callbackUrl: checked, callbackSecretSealed: seal(callbackSecret) };
}

const REJECT: InboundDecision = { action: 'reject' };

const checkDecision = compileCheck(DecisionBody);

/** Parses the response of an `ask` URL. @throws TandemError VALIDATION_FAILED */
export function readInboundAnswer(answer: unknown, numberPlan: NumberPlan): InboundDecision {
  const error = checkDecision(answer);
  if (error !== null) throw error;
  return readDecision(answer as Decision, { ownUserId: null, numberPlan });
}

function readDecision(body: Decision, options: ReadRuleOptions, path = ''): InboundDecision {
  const { action, to, announce = null, voice_id: voiceId = null, ...more } = body;
  if (action === 'reject') {
    requireOnly(body, [], path);
    return { action };
  }
  const endpoint = more.endpoint ?? to;
  if (endpoint === undefined) throw invalid(`${path}endpoint`, 'is required with forward');
  if (endpoint !== to && to !== undefined) throw invalid(`${path}to`, 'must not be combined with endpoint');
  const { ring_timeout = 30, max_duration = 3600, record = false, transcribe = false } = more;
  return {
    action,
    endpoint: readEndpoint(endpoint, { ...options, field: endpoint === to ? 'to' : 'endpoint' }),
    ringTimeoutS: ring_timeout,
    maxDurationS: max_duration,
    ...{ record, transcribe, announce, voiceId },
  };
}

/** @throws TandemError VALIDATION_FAILED for a field that the action does not have */
function requireOnly(body: { action: string }, fields: readonly string[], path = ''): void {
  const extra = Object.keys(body).find((field) => field !== 'action' && !fields.includes(field));
  if (extra !== undefined) throw invalid(`${path}${extra}`, `must not be combined with ${body.action}`);
}

function invalid(path: string, message: string): TandemError {
  return validationFailed([{ path, message }]);
}

export function presentInboundRule(rule: InboundRule | null): Static<typeof InboundRuleSchema> {
  if (rule === null) return null;
  if (rule.action !== 'ask') {
    const callbacks = rule.action === 'forward' && rule.callbackUrl != null ? { callback_url: rule.callbackUrl } : {};
    return { ...presentDecision(rule), ...callbacks };
  }
  const { action, url, secretLast4, fallback } = rule;
  return { action, url, secret_last4: secretLast4, fallback: presentDecision(fallback) };
}

function presentDecision(decision: InboundDecision) {
  return decision.action === 'reject' ? decision : presentForward(decision);
}

function presentForward(rule: ForwardRule) {
  const { action, endpoint, ringTimeoutS, maxDurationS, record, transcribe, announce, voiceId } = rule;
  return {
    action,
    endpoint: endpoint.type === 'phone' ? endpoint : { type: 'webrtc' as const, user_id: endpoint.userId },
    ring_timeout: ringTimeoutS,
    max_duration: maxDurationS,
    ...{ record, transcribe, announce, voice_id: voiceId },
  };
}
