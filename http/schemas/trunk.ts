import { type Static, Type } from 'typebox';
import type { MediaEncryption } from '../../machines/events.ts';
import type { CreateTrunkInput, TrunkPatch, TrunkRow } from '../../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import type { SecretBox } from '../../storage/secrets.ts';
import { validationFailed } from '../validation.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { nanoToUsd, usdToNano } from './money.ts';
import { E164Schema, normaliseE164 } from './phone-number.ts';

const SIP_URI = '^[sS][iI][pP]:(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?$';
/** Lone surrogates cannot be stored unchanged. */
const PLAIN_TEXT = {
  pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$',
  description: 'No control characters.',
};
/** The characters that a quoted string of a Digest header holds without escaping. */
const USERNAME = {
  pattern: '^[\\u0020\\u0021\\u0023-\\u005b\\u005d-\\u007e]*$',
  description: 'Printable ASCII, without quotation marks and backslashes.',
};

const SOUND_CODECS = ['PCMU', 'PCMA', 'G722', 'OPUS'] as const;

const CODECS =
  'RTP codecs to offer, preferred first. The carrier chooses one of them for each leg. Packets are forwarded as they came where both legs use the same codec. Otherwise they are transcoded: between PCMU and PCMA sample by sample, else by way of a jitter buffer, which adds about 40 ms. G722 and OPUS are wideband. CN, beside at least one of the others, allows comfort noise instead of audio in pauses (RFC 3389), which saves bandwidth.';

const ENCRYPTION =
  'SRTP with keys in SDP (RFC 4568). `none`: plain RTP. `optional`: offers both in one INVITE (RTP/AVP with `a=crypto`, RFC 8643) and encrypts if the carrier agrees. `required`: offers RTP/SAVP, and a leg that the carrier answers without encryption ends with `INCOMPATIBLE_DESTINATION`. The keys travel in SIP messages, so protect those too.';

const FIELDS = {
  name: Type.String({
    minLength: 1,
    maxLength: 100,
    ...PLAIN_TEXT,
    description: 'Display name. No control characters.',
  }),
  sip_uri: Type.String({
    pattern: SIP_URI,
    maxLength: 300,
    description: '`sip:host` or `sip:host:port`. The dialed number becomes the user part.',
    examples: ['sip:carrier.example:5060'],
  }),
  transport: Type.Enum(['udp', 'tcp'], { description: 'Transport of SIP messages.' }),
  username: nullableText({
    maxLength: 128,
    ...USERNAME,
    description: `User name for Digest authentication. ${USERNAME.description}`,
  }),
  password: nullableText({
    maxLength: 256,
    ...PLAIN_TEXT,
    writeOnly: true,
    description: `Password for Digest authentication. ${PLAIN_TEXT.description}`,
  }),
  register: Type.Boolean({
    description:
      'Reserved. Tandem stores it, but does not register with carriers yet: it sends each INVITE to sip_uri.',
  }),
  codecs: Type.Array(Type.Enum([...SOUND_CODECS, 'CN']), {
    minItems: 1,
    maxItems: 5,
    uniqueItems: true,
    contains: Type.Enum([...SOUND_CODECS]),
    description: CODECS,
  }),
  media_encryption: Type.Enum(['none', 'optional', 'required'], { description: ENCRYPTION }),
  channels: Type.Integer({ minimum: 0, maximum: 10_000, description: 'Maximum number of simultaneous calls.' }),
  allowed_prefixes: Type.Array(
    Type.String({ pattern: '^\\+[1-9][0-9]{0,14}$', description: 'Prefix in E.164 format, such as +91.' }),
    {
      maxItems: 200,
      description: 'Prefixes of the numbers that may be called. An empty list allows all.',
    },
  ),
  numbers: Type.Array(E164Schema, {
    maxItems: 1000,
    description: 'Numbers that the carrier assigned to the trunk. Workspaces rent them.',
  }),
  default_caller_id: Type.Union([E164Schema, Type.Null()], {
    description: 'Caller ID of calls placed without `did`. Must be one of `numbers`.',
  }),
  price_per_minute_usd: Type.Number({
    minimum: 0,
    maximum: 1000,
    description: 'Charge per minute of talk, in USD, with at most nine decimals.',
  }),
};
const EXAMPLE = {
  name: 'Carrier',
  sip_uri: 'sip:carrier.example:5060',
  username: 'tandem',
  password: 'secret of the carrier',
  numbers: ['+912240000001'],
  price_per_minute_usd: 0.0125,
};

export const TrunkBody = Type.Object(
  {
    name: FIELDS.name,
    sip_uri: FIELDS.sip_uri,
    transport: Type.Optional({ ...FIELDS.transport, default: 'udp' }),
    username: Type.Optional(FIELDS.username),
    password: Type.Optional(FIELDS.password),
    register: Type.Optional({ ...FIELDS.register, default: false }),
    codecs: Type.Optional({ ...FIELDS.codecs, default: ['PCMU', 'PCMA'] }),
    media_encryption: Type.Optional({ ...FIELDS.media_encryption, default: 'none' }),
    channels: Type.Optional({ ...FIELDS.channels, default: 10 }),
    allowed_prefixes: Type.Optional({ ...FIELDS.allowed_prefixes, default: [] }),
    numbers: Type.Optional({ ...FIELDS.numbers, default: [] }),
    default_caller_id: Type.Optional(FIELDS.default_caller_id),
    price_per_minute_usd: Type.Optional({ ...FIELDS.price_per_minute_usd, default: 0 }),
  },
  { additionalProperties: false, examples: [EXAMPLE] },
);

export const TrunkPatchBody = Type.Object(
  {
    name: Type.Optional(FIELDS.name),
    sip_uri: Type.Optional(FIELDS.sip_uri),
    transport: Type.Optional(FIELDS.transport),
    username: Type.Optional(FIELDS.username),
    password: Type.Optional(FIELDS.password),
    register: Type.Optional(FIELDS.register),
    codecs: Type.Optional(FIELDS.codecs),
    media_encryption: Type.Optional(FIELDS.media_encryption),
    channels: Type.Optional(FIELDS.channels),
    allowed_prefixes: Type.Optional(FIELDS.allowed_prefixes),
    numbers: Type.Optional(FIELDS.numbers),
    default_caller_id: Type.Optional(FIELDS.default_caller_id),
    price_per_minute_usd: Type.Optional(FIELDS.price_per_minute_usd),
    status: Type.Optional(Type.Enum(['active', 'disabled'], { description: 'A disabled trunk places no calls.' })),
  },
  { additionalProperties: false, minProperties: 1, examples: [{ channels: 30 }] },
);

const TRUNK_PROPERTIES = {
  id: Type.String({ format: 'uuid', description: 'Id of the trunk.' }),
  name: Type.String({ description: 'Display name.' }),
  sip_uri: Type.String({ description: 'SIP URI of the carrier.' }),
  transport: Type.Enum(['udp', 'tcp', 'tls'], { description: 'Transport of SIP messages.' }),
  username: nullable(Type.String({ description: 'User name for Digest authentication.' })),
  register: Type.Boolean({ description: 'Reserved, as in the request: Tandem does not register with carriers yet.' }),
  codecs: Type.Array(Type.String(), { description: CODECS }),
  media_encryption: Type.Enum(['none', 'optional', 'required'], { description: ENCRYPTION }),
  channels: Type.Integer({ description: 'Maximum number of simultaneous calls.' }),
  allowed_prefixes: Type.Array(Type.String(), {
    description: 'Prefixes of the numbers that may be called. An empty list allows all.',
  }),
  numbers: Type.Array(E164Schema, { description: 'Numbers that the carrier assigned to the trunk.' }),
  status: Type.Enum(['active', 'disabled'], { description: 'A disabled trunk places no calls.' }),
  default_caller_id: nullable({ ...E164Schema, description: 'Caller ID of calls placed without `did`.' }),
  price_per_minute_usd: Type.Number({ description: 'Charge per minute of talk, in USD.' }),
  created_at: { ...TimeSchema, description: 'When the trunk was created.' },
};

export const TrunkSchema = Type.Object(TRUNK_PROPERTIES, {
  examples: [
    {
      id: '7d9f3a52-1c7b-4e0e-9f58-2f0d3f6f1b21',
      name: EXAMPLE.name,
      sip_uri: EXAMPLE.sip_uri,
      transport: 'udp',
      username: EXAMPLE.username,
      register: false,
      codecs: ['PCMU', 'PCMA'],
      media_encryption: 'none',
      channels: 10,
      allowed_prefixes: [],
      numbers: EXAMPLE.numbers,
      status: 'active',
      default_caller_id: null,
      price_per_minute_usd: EXAMPLE.price_per_minute_usd,
      created_at: '2026-01-31T09:30:00.000Z',
    },
  ],
});

interface SealFor {
  trunkId: string;
  secrets: SecretBox;
}

/** @throws TandemError VALIDATION_FAILED */
export function readNewTrunk(
  body: Static<typeof TrunkBody>,
  sealFor: SealFor,
): Omit<CreateTrunkInput, 'id' | 'workspaceId' | 'now'> {
  return {
    transport: 'udp',
    username: null,
    passwordEncrypted: null,
    register: false,
    codecs: ['PCMU', 'PCMA'],
    mediaEncryption: 'none',
    channels: 10,
    allowedPrefixes: [],
    numbers: [],
    defaultCallerId: null,
    pricePerMinuteNano: 0n,
    ...readFields(body, sealFor),
    name: body.name,
    sipUri: body.sip_uri,
  };
}

/** @throws TandemError VALIDATION_FAILED */
export function readTrunkPatch(body: Static<typeof TrunkPatchBody>, sealFor: SealFor): TrunkPatch {
  return readFields(body, sealFor);
}

export function presentTrunk(row: TrunkRow) {
  return {
    id: row.id,
    name: row.name,
    sip_uri: row.sipUri,
    transport: row.transport,
    username: row.username,
    register: row.register,
    codecs: row.codecs,
    media_encryption: row.mediaEncryption,
    channels: row.channels,
    allowed_prefixes: row.allowedPrefixes,
    numbers: row.numbers,
    status: row.status,
    default_caller_id: row.defaultCallerId,
    price_per_minute_usd: nanoToUsd(row.pricePerMinuteNano),
    created_at: row.createdAt.toISOString(),
  };
}

/** Maps exactly the fields that were sent. */
function readFields(body: Static<typeof TrunkPatchBody>, { trunkId, secrets }: SealFor): TrunkPatch {
  const patch: TrunkPatch = {};
  if (body.name !== undefined) patch.name = body.name;
  if (body.sip_uri !== undefined) patch.sipUri = requirePort(body.sip_uri);
  if (body.transport !== undefined) patch.transport = body.transport as 'udp' | 'tcp';
  if (body.username !== undefined) patch.username = body.username || null;
  if (body.password !== undefined) {
    patch.passwordEncrypted = body.password ? secrets.seal(body.password, trunkPasswordContext(trunkId)) : null;
  }
  if (body.register !== undefined) patch.register = body.register;
  if (body.codecs !== undefined) patch.codecs = body.codecs;
  if (body.media_encryption !== undefined) patch.mediaEncryption = body.media_encryption as MediaEncryption;
  if (body.channels !== undefined) patch.channels = body.channels;
  if (body.allowed_prefixes !== undefined) patch.allowedPrefixes = [...new Set(body.allowed_prefixes)];
  if (body.numbers !== undefined) {
    patch.numbers = [...new Set(body.numbers.map((number, index) => requireNumber(`numbers.${index}`, number)))];
  }
  if (body.default_caller_id !== undefined) {
    patch.defaultCallerId =
      body.default_caller_id === null ? null : requireNumber('default_caller_id', body.default_caller_id);
  }
  if (body.price_per_minute_usd !== undefined) patch.pricePerMinuteNano = requireNano(body.price_per_minute_usd);
  if (body.status !== undefined) patch.status = body.status as 'active' | 'disabled';
  return patch;
}

function requirePort(sipUri: string): string {
  const port = /:(\d{1,5})$/.exec(sipUri)?.[1];
  if (port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)) return sipUri;
  throw validationFailed([{ path: 'sip_uri', message: 'must have a port from 1 to 65535' }]);
}

function requireNumber(path: string, text: string): string {
  const e164 = normaliseE164(text);
  if (e164 === null) {
    throw validationFailed([{ path, message: 'must be a phone number in E.164 format, such as +912240000001' }]);
  }
  return e164;
}

function requireNano(usd: number): bigint {
  const nano = usdToNano(usd);
  if (nano === null) {
    throw validationFailed([{ path: 'price_per_minute_usd', message: 'must have at most nine decimals' }]);
  }
  return nano;
}

function nullableText(options: { maxLength: number; pattern: string; description: string; writeOnly?: boolean }) {
  return Type.Union([Type.String(options), Type.Null()]);
}
