import { type Static, Type } from 'typebox';
import type { PlaceCallRequest } from '../../actors/dialer.ts';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import { numberOfRawJson } from '../../storage/exact-json.ts';
import { E164Schema, IndianMobileSchema, normaliseE164, normaliseIndianMobile } from './phone-number.ts';

/**
 * Reads the body of a placement. Fields are looked at in the order of the specification's table, and the first that
 * is wrong is the one refused, with its own code; fields that do not exist come last. Null is not "absent": a field
 * is left out or has its type.
 * @throws TandemError with the INVALID_* codes, SAME_NUMBER, or VALIDATION_FAILED.
 */
export function parsePlacement(body: unknown): Placement {
  if (!isObject(body)) throw new TandemError('VALIDATION_FAILED', 'The body must be a JSON object.');
  const agentNumber = requireMobile(body, 'agent_number');
  const customerNumber = requireMobile(body, 'customer_number');
  if (agentNumber === customerNumber) {
    refuse('SAME_NUMBER', 'customer_number', 'must differ from agent_number');
  }
  const placement = {
    agentNumber,
    customerNumber,
    did: readDid(body),
    trunkId: readTrunkId(body),
    referenceId: readReference(body),
    ...readCallback(body),
    agentRingTimeoutS: readSeconds(body, 'agent_ring_timeout', 'INVALID_RING_TIMEOUT'),
    customerRingTimeoutS: readSeconds(body, 'customer_ring_timeout', 'INVALID_RING_TIMEOUT'),
    maxDurationS: readSeconds(body, 'max_duration', 'INVALID_MAX_DURATION'),
    record: readFlag(body, 'record', 'INVALID_RECORD'),
    metadata: readMetadata(body),
    transcribe: readFlag(body, 'transcribe', 'INVALID_TRANSCRIBE'),
    announce: readSpokenText(body, 'announce', 'INVALID_ANNOUNCE'),
    whisper: readSpokenText(body, 'whisper', 'INVALID_WHISPER'),
    voiceId: readVoiceId(body),
  };
  const unknown = Object.keys(body).find((field) => !Object.hasOwn(PlacementSchema.properties, field));
  if (unknown !== undefined) {
    refuse('VALIDATION_FAILED', unknown.slice(0, 64), 'is not a field of this request');
  }
  return placement;
}

/** A placement with numbers in +E.164 and defaults filled in; what the client left open is null. */
export type Placement = Omit<PlaceCallRequest, 'workspaceId' | 'placedVia' | 'apiKeyId' | 'apiKeyName' | 'userId'>;

const SECONDS = {
  agent_ring_timeout: { default: 30, minimum: 5, maximum: 60 },
  customer_ring_timeout: { default: 45, minimum: 5, maximum: 60 },
  max_duration: { default: 3600, minimum: 30, maximum: 7200 },
} as const;
const METADATA_MAX_BYTES = 2048;
const SPOKEN_LENGTH = { minLength: 1, maxLength: 500 };
const VOICE_ID_LENGTH = { minLength: 1, maxLength: 64 };
const SECRET_LENGTH = { minLength: 16, maxLength: 256 };
const URL_MAX_LENGTH = 2048;
const REFERENCE_PATTERN = '^[A-Za-z0-9._:-]{1,128}$';
export const REFERENCE = new RegExp(REFERENCE_PATTERN);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** For the OpenAPI document. The rules above are the ones applied, because each has its own error code. */
export const PlacementSchema = Type.Object(
  {
    agent_number: IndianMobileSchema,
    customer_number: IndianMobileSchema,
    did: Type.Optional({ ...E164Schema, description: "Caller ID on both legs; the trunk's saved one by default." }),
    outbound_trunk_id: Type.Optional(Type.String({ format: 'uuid' })),
    reference_id: Type.Optional(
      Type.String({ pattern: REFERENCE_PATTERN, description: 'Idempotency key, unique per trunk, permanent.' }),
    ),
    callback_url: Type.Optional(
      Type.String({
        format: 'uri',
        maxLength: URL_MAX_LENGTH,
        description: 'Public HTTPS URL that terminal events are delivered to; needs callback_secret.',
      }),
    ),
    callback_secret: Type.Optional(Type.String({ ...SECRET_LENGTH, writeOnly: true })),
    agent_ring_timeout: Type.Optional(Type.Integer(SECONDS.agent_ring_timeout)),
    customer_ring_timeout: Type.Optional(Type.Integer(SECONDS.customer_ring_timeout)),
    max_duration: Type.Optional(
      Type.Integer({ ...SECONDS.max_duration, description: 'Seconds of bridged talk after which the call is ended.' }),
    ),
    record: Type.Optional(Type.Boolean({ default: false })),
    metadata: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: 'At most 2048 bytes serialised, no NUL characters.' }),
    ),
    transcribe: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Recognise what both parties say while they talk: `transcript.final` events, and GET /dialer/click2call/{id}/transcript. Costs `stt` per minute of speech. Beyond the specification.',
      }),
    ),
    announce: Type.Optional(
      Type.String({
        ...SPOKEN_LENGTH,
        description:
          'Said to the agent on answering, before the customer is dialed: text or SSML, 30 seconds of it at the most. Costs `tts` per character once it is heard. If it cannot be said the call goes on without, which `announcement.failed` tells. Beyond the specification.',
        examples: ['Call from the web shop, order 1042.'],
      }),
    ),
    whisper: Type.Optional(
      Type.String({
        ...SPOKEN_LENGTH,
        description:
          'Likewise, said to the agent alone as the talk begins, over the customer, who is turned down meanwhile and does not hear it. It is in no recording. Beyond the specification.',
        examples: ['She has called twice today.'],
      }),
    ),
    voice_id: Type.Optional(
      Type.String({
        ...VOICE_ID_LENGTH,
        description: 'Who says `announce` and `whisper`: a voice of GET /voices, or a name such as `en-us` or `hi`.',
        examples: ['en-us'],
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [
      {
        agent_number: '+919812345678',
        customer_number: '98765 43210',
        reference_id: 'order-1042',
        record: true,
        metadata: { order: 1042 },
      },
    ],
  },
);
export type PlacementBody = Static<typeof PlacementSchema>;

type Body = Record<string, unknown>;

function requireMobile(body: Body, field: 'agent_number' | 'customer_number'): string {
  if (!Object.hasOwn(body, field)) refuse('INVALID_NUMBER', field, 'is required');
  return (
    normaliseIndianMobile(body[field]) ??
    refuse('INVALID_NUMBER', field, 'must be an Indian mobile number such as +919812345678')
  );
}

function readDid(body: Body): string | null {
  if (!Object.hasOwn(body, 'did')) return null;
  return normaliseE164(body.did) ?? refuse('INVALID_NUMBER', 'did', 'must be a number in +E.164');
}

function readTrunkId(body: Body): string | null {
  if (!Object.hasOwn(body, 'outbound_trunk_id')) return null;
  const id = body.outbound_trunk_id;
  if (typeof id === 'string' && UUID.test(id)) return id.toLowerCase();
  return refuse('VALIDATION_FAILED', 'outbound_trunk_id', 'must be the UUID of a trunk');
}

function readReference(body: Body): string | null {
  if (!Object.hasOwn(body, 'reference_id')) return null;
  const reference = body.reference_id;
  if (typeof reference === 'string' && REFERENCE.test(reference)) return reference;
  return refuse('INVALID_REFERENCE', 'reference_id', 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -');
}

/** The shape only: whether the URL is https, public and resolvable is for the dialer to find out. */
function readCallback(body: Body): Pick<Placement, 'callbackUrl' | 'callbackSecret'> {
  const callbackUrl = Object.hasOwn(body, 'callback_url') ? parseCallbackUrl(body.callback_url) : null;
  if (!Object.hasOwn(body, 'callback_secret')) {
    if (callbackUrl !== null) refuse('INVALID_CALLBACK_SECRET', 'callback_secret', 'is required with callback_url');
    return { callbackUrl, callbackSecret: null };
  }
  const secret = body.callback_secret;
  if (typeof secret !== 'string' || !isPlainText(secret) || !hasLength(secret, SECRET_LENGTH)) {
    return refuse('INVALID_CALLBACK_SECRET', 'callback_secret', 'must be 16 to 256 characters, none of them control');
  }
  return { callbackUrl, callbackSecret: secret };
}

function parseCallbackUrl(input: unknown): string {
  const text = typeof input === 'string' && input.length <= URL_MAX_LENGTH ? input : '';
  // The URL parser would silently drop spaces and line breaks.
  const url = isPlainText(text) && !text.includes(' ') && URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    return refuse('INVALID_CALLBACK_URL', 'callback_url', 'must be an absolute https URL of at most 2048 characters');
  }
  if (url.username !== '' || url.password !== '') {
    refuse('INVALID_CALLBACK_URL', 'callback_url', 'must not contain a user name or password');
  }
  return text;
}

function readSeconds(body: Body, field: keyof typeof SECONDS, code: ErrorCode): number {
  const { default: byDefault, minimum, maximum } = SECONDS[field];
  if (!Object.hasOwn(body, field)) return byDefault;
  const value = body[field];
  if (Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum) return value as number;
  return refuse(code, field, `must be an integer from ${minimum} to ${maximum}`);
}

function readFlag(body: Body, field: 'record' | 'transcribe', code: ErrorCode): boolean {
  if (!Object.hasOwn(body, field)) return false;
  const value = body[field];
  return typeof value === 'boolean' ? value : refuse(code, field, 'must be true or false');
}

/** Whether it can be spoken is for the dialer to find out. */
function readSpokenText(body: Body, field: 'announce' | 'whisper', code: ErrorCode): string | null {
  if (!Object.hasOwn(body, field)) return null;
  const text = body[field];
  if (typeof text === 'string' && hasLength(text, SPOKEN_LENGTH) && isPlainText(text.replaceAll(/[\t\r\n]/g, ' '))) {
    return text;
  }
  return refuse(code, field, 'must be 1 to 500 characters of text or SSML, none of them control');
}

function readVoiceId(body: Body): string | null {
  if (!Object.hasOwn(body, 'voice_id')) return null;
  const id = body.voice_id;
  if (typeof id === 'string' && hasLength(id, VOICE_ID_LENGTH) && isPlainText(id)) return id;
  return refuse('VALIDATION_FAILED', 'voice_id', 'must be the id or the name of a voice');
}

function readMetadata(body: Body): Record<string, unknown> | null {
  if (!Object.hasOwn(body, 'metadata')) return null;
  const metadata = body.metadata;
  if (!isObject(metadata)) return refuse('INVALID_METADATA', 'metadata', 'must be an object');
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_MAX_BYTES) {
    refuse('INVALID_METADATA', 'metadata', `must be at most ${METADATA_MAX_BYTES} bytes as JSON`);
  }
  if (someScalar(metadata, (scalar) => typeof scalar === 'string' && scalar.includes('\0'))) {
    refuse('INVALID_METADATA', 'metadata', 'must not contain NUL characters');
  }
  // 1e999 parses to Infinity, which would come back as null.
  if (someScalar(metadata, (scalar) => typeof scalar === 'number' && !Number.isFinite(scalar))) {
    refuse('INVALID_METADATA', 'metadata', 'must not contain numbers beyond 1.8e308');
  }
  return metadata;
}

/** Whether any key or leaf satisfies the test. Depth is bounded by the body parser. */
function someScalar(value: unknown, test: (scalar: unknown) => boolean): boolean {
  const exactNumber = numberOfRawJson(value);
  if (exactNumber !== null) return test(exactNumber);
  if (Array.isArray(value)) return value.some((item) => someScalar(item, test));
  if (isObject(value)) return Object.entries(value).some(([key, item]) => test(key) || someScalar(item, test));
  return test(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** No control characters, no halves of a surrogate pair: text that every layer below carries unchanged. */
function isPlainText(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  return text.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(text);
}

/** In code points. */
function hasLength(text: string, { minLength, maxLength }: { minLength: number; maxLength: number }): boolean {
  // No code point has more than two units.
  if (text.length > 2 * maxLength) return false;
  const characters = [...text].length;
  return characters >= minLength && characters <= maxLength;
}

function refuse(code: ErrorCode, path: string, message: string): never {
  throw new TandemError(code, `${path} ${message}.`, { details: [{ path, message }] });
}
