import { type Static, Type } from 'typebox';
import type { PlaceCallRequest } from '../../actors/dialer.ts';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import { isObject } from '../../runtime/is-object.ts';
import { numberOfRawJson } from '../../storage/exact-json.ts';
import { isUuid } from '../../storage/queries/identifiers.ts';
import { BrowserEndpointSchema } from './endpoint.ts';
import {
  CALLABLE_FORMATS,
  CallableNumberSchema,
  E164Schema,
  expectedNumber,
  type NumberPlan,
  normaliseCallable,
  normaliseE164,
} from './phone-number.ts';

/**
 * Validates the body of a placement. Checks fields in the order of the API reference, then unknown fields, and throws
 * for the first invalid one with its own code. Null does not count as absent.
 * @throws TandemError with an INVALID_* code, SAME_NUMBER or VALIDATION_FAILED
 */
export function parsePlacement(body: unknown, { ownUserId, numberPlan }: PlacementReading): Placement {
  if (!isObject(body)) throw new TandemError('VALIDATION_FAILED', 'The body must be a JSON object.');
  const { agentNumber, agentUserId } = readAgent(body, { ownUserId, numberPlan });
  const customerNumber = requireCallable(body, 'customer_number', numberPlan);
  if (agentNumber === customerNumber) {
    refuse('SAME_NUMBER', 'customer_number', 'must differ from agent_number');
  }
  const placement = {
    agentNumber,
    agentUserId,
    customerNumber,
    did: readDid(body),
    trunkId: readTrunkId(body),
    referenceId: readReference(body),
    ...readCallback(body),
    agentRingTimeoutS: readSeconds(body, 'agent_ring_timeout', 'INVALID_RING_TIMEOUT'),
    customerRingTimeoutS: readSeconds(body, 'customer_ring_timeout', 'INVALID_RING_TIMEOUT'),
    maxDurationS: readSeconds(body, 'max_duration', 'INVALID_MAX_DURATION'),
    record: readFlag(body, 'record', 'INVALID_RECORD'),
    recordingBeep: Object.hasOwn(body, 'recording_beep') ? readFlag(body, 'recording_beep', 'INVALID_RECORD') : null,
    metadata: readMetadata(body),
    transcribe: readFlag(body, 'transcribe', 'INVALID_TRANSCRIBE'),
    onMachine: readMachineDetection(body),
    announce: readScript(body, 'announce', 'INVALID_ANNOUNCE'),
    whisper: readScript(body, 'whisper', 'INVALID_WHISPER'),
    voiceId: readVoiceId(body),
  };
  const unknown = Object.keys(body).find((field) => !Object.hasOwn(PlacementSchema.properties, field));
  if (unknown !== undefined) {
    refuse('VALIDATION_FAILED', unknown.slice(0, 64), 'is not a known field');
  }
  return placement;
}

interface PlacementReading {
  /** User who places the call; null without one. */
  ownUserId: number | null;
  numberPlan: NumberPlan;
}

/** A placement with E.164 numbers and defaults applied. Absent fields without a default are null. */
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

/** Documentation only: `parsePlacement` validates, because each field has its own error code. */
export const PlacementSchema = Type.Object(
  {
    agent_number: Type.Optional({
      ...CallableNumberSchema,
      description: `Number to dial first. Required without \`agent_endpoint\`. ${CALLABLE_FORMATS}`,
    }),
    agent_endpoint: Type.Optional({
      ...BrowserEndpointSchema,
      description:
        'Ring the browser of a user instead of `agent_number`. The browser connects with POST /phone/tokens; if none is connected, the call fails with NO_USER_RESPONSE. Tandem extension.',
    }),
    customer_number: {
      ...CallableNumberSchema,
      description: `Number to dial once the agent answers. Must differ from \`agent_number\`. ${CALLABLE_FORMATS}`,
    },
    did: Type.Optional({
      ...E164Schema,
      description:
        "Caller ID on both legs, in E.164 format. Must be a number of the trunk, rented by the workspace. Default: the trunk's saved caller ID.",
    }),
    outbound_trunk_id: Type.Optional(
      Type.String({ format: 'uuid', description: "Trunk to dial over. Default: the workspace's active trunk." }),
    ),
    reference_id: Type.Optional(
      Type.String({
        pattern: REFERENCE_PATTERN,
        description:
          'Idempotency key, unique per trunk and permanent: a failed call keeps it. 1 to 128 characters. Default: a generated `qc2c-<uuid>`.',
      }),
    ),
    callback_url: Type.Optional(
      Type.String({
        format: 'uri',
        maxLength: URL_MAX_LENGTH,
        description: 'Public HTTPS URL that receives the terminal event. Requires `callback_secret`.',
      }),
    ),
    callback_secret: Type.Optional(
      Type.String({
        ...SECRET_LENGTH,
        writeOnly: true,
        description:
          'Key that signs callbacks, 16 to 256 characters. Required with `callback_url`. Stored encrypted; only its last four characters can be read back.',
      }),
    ),
    agent_ring_timeout: Type.Optional(
      Type.Integer({ ...SECONDS.agent_ring_timeout, description: 'Seconds to ring the agent.' }),
    ),
    customer_ring_timeout: Type.Optional(
      Type.Integer({ ...SECONDS.customer_ring_timeout, description: 'Seconds to ring the customer.' }),
    ),
    max_duration: Type.Optional(
      Type.Integer({
        ...SECONDS.max_duration,
        description: 'Seconds of bridged talk after which the call is hung up.',
      }),
    ),
    record: Type.Optional(
      Type.Boolean({ default: false, description: 'Record the call. The recording is uploaded after the call ends.' }),
    ),
    recording_beep: Type.Optional(
      Type.Boolean({
        description:
          'Play a tone to both parties when the recording starts: 1400 Hz for half a second. Not recorded. Default: the setting of the workspace, PATCH /dialer/recording-settings. Tandem extension.',
      }),
    ),
    metadata: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'Any JSON object, returned with the call and in every callback. At most 2048 bytes serialised, without NUL characters.',
        },
      ),
    ),
    transcribe: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Transcribe both parties during the call, as `transcript.final` events and at GET /dialer/click2call/{id}/transcript. Billed per minute of speech at the `stt` rate. Tandem extension.',
      }),
    ),
    machine_detection: Type.Optional(
      Type.Object(
        {
          mode: Type.Enum(['enable'], { description: 'Always `enable`.' }),
          on_machine: Type.Enum(['continue', 'hangup'], {
            description:
              '`continue` reports the result and leaves the call alone. `hangup` ends the call when the result is `machine`, `beep` or `fax`.',
          }),
        },
        {
          additionalProperties: false,
          description:
            'Find out whether a person or a machine answers the customer number. Both parties are bridged at once, so a person never waits. Emits `machine.detected`, usually within a second of the end of a short greeting. Free of charge. Tandem extension.',
        },
      ),
    ),
    announce: Type.Optional(
      Type.String({
        ...SPOKEN_LENGTH,
        description:
          'Text or SSML to play to the agent on answer, before the customer is dialed. At most 30 seconds are played. Billed per character at the `tts` rate once playback starts. If synthesis fails, the call continues and emits `announcement.failed`. Tandem extension.',
        examples: ['Call from the web shop, order 1042.'],
      }),
    ),
    whisper: Type.Optional(
      Type.String({
        ...SPOKEN_LENGTH,
        description:
          'Text or SSML to play to the agent only, at the start of the talk. The customer does not hear it and is played to the agent at reduced volume meanwhile. Not recorded. Billed like `announce`. Tandem extension.',
        examples: ['She has called twice today.'],
      }),
    ),
    voice_id: Type.Optional(
      Type.String({
        ...VOICE_ID_LENGTH,
        description:
          'Voice for `announce` and `whisper`: an id from GET /voices, or a short name such as `en-us` or `hi`.',
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

function readAgent(
  body: Body,
  { ownUserId, numberPlan }: PlacementReading,
): Pick<Placement, 'agentNumber'> & { agentUserId: number | null } {
  if (!Object.hasOwn(body, 'agent_endpoint')) {
    return { agentNumber: requireCallable(body, 'agent_number', numberPlan), agentUserId: null };
  }
  if (Object.hasOwn(body, 'agent_number')) {
    refuse('INVALID_ENDPOINT', 'agent_endpoint', 'must not be combined with agent_number');
  }
  const endpoint = body.agent_endpoint;
  if (!isObject(endpoint)) return refuse('INVALID_ENDPOINT', 'agent_endpoint', 'must be an object');
  const { type, user_id: userId = ownUserId, ...rest } = endpoint;
  if (type !== 'webrtc') return refuse('INVALID_ENDPOINT', 'agent_endpoint.type', 'must be "webrtc"');
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    return refuse('INVALID_ENDPOINT', `agent_endpoint.${unknown.slice(0, 64)}`, 'is not a known field');
  }
  if (Number.isInteger(userId) && (userId as number) > 0 && (userId as number) < 2 ** 31) {
    return { agentNumber: null, agentUserId: userId as number };
  }
  return refuse('INVALID_ENDPOINT', 'agent_endpoint.user_id', 'must be the id of a user');
}

function requireCallable(body: Body, field: 'agent_number' | 'customer_number', plan: NumberPlan): string {
  if (!Object.hasOwn(body, field)) refuse('INVALID_NUMBER', field, 'is required');
  return normaliseCallable(body[field], plan) ?? refuse('INVALID_NUMBER', field, expectedNumber(plan));
}

function readDid(body: Body): string | null {
  if (!Object.hasOwn(body, 'did')) return null;
  return normaliseE164(body.did) ?? refuse('INVALID_NUMBER', 'did', 'must be in E.164 format, such as +912240000001');
}

function readTrunkId(body: Body): string | null {
  if (!Object.hasOwn(body, 'outbound_trunk_id')) return null;
  const id = body.outbound_trunk_id;
  if (typeof id === 'string' && isUuid(id)) return id.toLowerCase();
  return refuse('VALIDATION_FAILED', 'outbound_trunk_id', 'must be the UUID of a trunk');
}

function readReference(body: Body): string | null {
  if (!Object.hasOwn(body, 'reference_id')) return null;
  const reference = body.reference_id;
  if (typeof reference === 'string' && REFERENCE.test(reference)) return reference;
  return refuse('INVALID_REFERENCE', 'reference_id', 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -');
}

/** Checks only the syntax; the dialer checks that the host is public and resolves. */
function readCallback(body: Body): Pick<Placement, 'callbackUrl' | 'callbackSecret'> {
  const callbackUrl = Object.hasOwn(body, 'callback_url') ? parseCallbackUrl(body.callback_url) : null;
  if (!Object.hasOwn(body, 'callback_secret')) {
    if (callbackUrl !== null) refuse('INVALID_CALLBACK_SECRET', 'callback_secret', 'is required with callback_url');
    return { callbackUrl, callbackSecret: null };
  }
  const secret = body.callback_secret;
  if (typeof secret !== 'string' || !isPlainText(secret) || !hasLength(secret, SECRET_LENGTH)) {
    return refuse(
      'INVALID_CALLBACK_SECRET',
      'callback_secret',
      'must be 16 to 256 characters without control characters',
    );
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

function readFlag(body: Body, field: 'record' | 'recording_beep' | 'transcribe', code: ErrorCode): boolean {
  if (!Object.hasOwn(body, field)) return false;
  const value = body[field];
  return typeof value === 'boolean' ? value : refuse(code, field, 'must be true or false');
}

/** Null if absent. */
function readMachineDetection(body: Body): 'continue' | 'hangup' | null {
  if (!Object.hasOwn(body, 'machine_detection')) return null;
  const detection = body.machine_detection;
  if (!isObject(detection)) return refuse('INVALID_MACHINE_DETECTION', 'machine_detection', 'must be an object');
  const { mode, on_machine: onMachine, ...rest } = detection;
  if (mode !== 'enable') return refuse('INVALID_MACHINE_DETECTION', 'machine_detection.mode', 'must be "enable"');
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    const path = `machine_detection.${unknown.slice(0, 64)}`;
    return refuse('INVALID_MACHINE_DETECTION', path, 'is not a known field');
  }
  if (onMachine === 'continue' || onMachine === 'hangup') return onMachine;
  return refuse('INVALID_MACHINE_DETECTION', 'machine_detection.on_machine', 'must be "continue" or "hangup"');
}

/** Reads the text or SSML of a call's speech. Checks length and characters; the dialer checks the SSML. */
function readScript(body: Body, field: 'announce' | 'whisper', code: ErrorCode): string | null {
  if (!Object.hasOwn(body, field)) return null;
  const text = body[field];
  if (typeof text === 'string' && hasLength(text, SPOKEN_LENGTH) && isPlainText(text.replaceAll(/[\t\r\n]/g, ' '))) {
    return text;
  }
  return refuse(code, field, 'must be 1 to 500 characters of text or SSML, without control characters');
}

function readVoiceId(body: Body): string | null {
  if (!Object.hasOwn(body, 'voice_id')) return null;
  const id = body.voice_id;
  if (typeof id === 'string' && hasLength(id, VOICE_ID_LENGTH) && isPlainText(id)) return id;
  return refuse('VALIDATION_FAILED', 'voice_id', 'must be the id or the short name of a voice. GET /voices lists them');
}

function readMetadata(body: Body): Record<string, unknown> | null {
  if (!Object.hasOwn(body, 'metadata')) return null;
  const metadata = body.metadata;
  if (!isObject(metadata)) return refuse('INVALID_METADATA', 'metadata', 'must be an object');
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_MAX_BYTES) {
    refuse('INVALID_METADATA', 'metadata', `must be at most ${METADATA_MAX_BYTES} bytes of JSON`);
  }
  if (someScalar(metadata, (scalar) => typeof scalar === 'string' && scalar.includes('\0'))) {
    refuse('INVALID_METADATA', 'metadata', 'must not contain NUL characters');
  }
  // 1e999 parses to Infinity, which JSON would return as null.
  if (someScalar(metadata, (scalar) => typeof scalar === 'number' && !Number.isFinite(scalar))) {
    refuse('INVALID_METADATA', 'metadata', 'must not contain numbers beyond 1.8e308');
  }
  return metadata;
}

/** Whether any key or leaf passes the test. The body parser limits the depth. */
function someScalar(value: unknown, test: (scalar: unknown) => boolean): boolean {
  const exactNumber = numberOfRawJson(value);
  if (exactNumber !== null) return test(exactNumber);
  if (Array.isArray(value)) return value.some((item) => someScalar(item, test));
  if (isObject(value)) return Object.entries(value).some(([key, item]) => test(key) || someScalar(item, test));
  return test(value);
}

/** Rejects control characters and lone surrogates, so that every layer stores the text unchanged. */
function isPlainText(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: rejects control characters
  return text.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(text);
}

/** Counts code points. */
function hasLength(text: string, { minLength, maxLength }: { minLength: number; maxLength: number }): boolean {
  // A code point has at most two UTF-16 units.
  if (text.length > 2 * maxLength) return false;
  const characters = [...text].length;
  return characters >= minLength && characters <= maxLength;
}

function refuse(code: ErrorCode, path: string, message: string): never {
  throw new TandemError(code, `${path} ${message}.`, { details: [{ path, message }] });
}
