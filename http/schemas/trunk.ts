import { type Static, Type } from 'typebox';
import type { MediaEncryption } from '../../machines/events.ts';
import { nanoToUsd, usdToNano } from '../../runtime/money.ts';
import { REACHABILITY_REASONS } from '../../storage/queries/reachability.ts';
import {
  type Gateway,
  gatewaysOf,
  healthOf,
  type StoredGateway,
  type TrunkTransport,
} from '../../storage/queries/trunk-gateways.ts';
import type { ProbeOutcome } from '../../storage/queries/trunk-probes.ts';
import type { CreateTrunkInput, ReferPermission, TrunkPatch, TrunkRow } from '../../storage/queries/trunks.ts';
import { trunkInboundPasswordContext, trunkPasswordContext } from '../../storage/secret-contexts.ts';
import type { SecretBox } from '../../storage/secrets.ts';
import { validationFailed } from '../validation.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { E164Schema, normaliseE164 } from './phone-number.ts';

const SIP_URI = '^[sS][iI][pP][sS]?:(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?$';
/** Lone surrogates cannot be stored unchanged. */
const PLAIN_TEXT = {
  pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$',
  description: 'No control characters.',
};
/** Characters that a quoted string of a Digest header needs not escape. */
const USERNAME = {
  pattern: '^[\\u0020\\u0021\\u0023-\\u005b\\u005d-\\u007e]*$',
  description: 'Printable ASCII, without quotation marks and backslashes.',
};

const SOUND_CODECS = ['PCMU', 'PCMA', 'G722', 'OPUS'] as const;

const CODECS =
  'RTP codecs to offer, preferred first. The carrier chooses one of them for each leg. Packets are forwarded as they came where both legs use the same codec. Otherwise they are transcoded: between PCMU and PCMA sample by sample, else by way of a jitter buffer, which adds about 40 ms. G722 and OPUS are wideband. CN, beside at least one of the others, allows comfort noise instead of audio in pauses (RFC 3389), which saves bandwidth.';

const ENCRYPTION =
  'SRTP with keys in SDP (RFC 4568). `none`: plain RTP. `optional`: offers both in one INVITE (RTP/AVP with `a=crypto`, RFC 8643) and encrypts if the carrier agrees. `required`: offers RTP/SAVP, and a leg that the carrier answers without encryption ends with `INCOMPATIBLE_DESTINATION`. The keys travel in SIP messages, so protect those too.';

const TRANSPORT =
  'Transport of SIP messages. `tls`: the certificate of the carrier must be valid and prove the host of sip_uri (RFC 5922), or the trunk is down with `transport_error`. The default port is 5061 then, else 5060. `auto`: selected by the NAPTR and SRV records of the carrier (RFC 3263), or else UDP.';

const HEALTH =
  'How Tandem finds out whether the carrier responds. Any response counts, a refusal or the answer to a call too. `options`: also sends OPTIONS requests. After two requests in a row without a response, calls are refused with `CARRIER_LINE_DOWN`, except one try per minute. A carrier that ignores OPTIONS but answers calls stays up. `none`: sends nothing and refuses no calls.';
const HEALTH_MODE = { description: 'Whether to send OPTIONS requests. Default: `options`.' };
const HEALTH_INTERVAL = {
  minimum: 10,
  maximum: 3600,
  description: 'Seconds between OPTIONS requests. Default: 30. Changes apply within 30 seconds.',
};

const REASONS =
  'The cause of the last change. `not_checked`: no request was sent yet. `options_not_answered`: OPTIONS requests get no response, and no call was placed yet. `options_answered`, `call_answered`, `register_answered`: the carrier responded to that request. `no_response`: requests timed out. `transport_error`: the address cannot be resolved or reached.';

const REGISTER =
  'Registers `username` at the carrier, and refreshes the registration before it expires. Requires `username`. Changes apply within 5 seconds. Disabling or deleting the trunk, or stopping the server, removes the registration.';

const REFER =
  'Selects who may transfer a call from their phone with REFER (RFC 3515). The number is dialed over the trunk of the call, with the same limits and charges as POST .../transfer. `none`: declines REFER. `both`: lets customers transfer, too, at the expense of the workspace. Default: `none`. Tandem extension.';

const INBOUND_AUTH =
  'Account that inbound calls prove with Digest authentication (MD5) if they do not come from an address of the trunk. Null: such calls are refused. Default: null. Tandem extension.';

const GATEWAYS =
  'Addresses of the carrier. The first is `sip_uri`. A call goes to the gateways with the lowest `priority`, shared by `weight`, and on to the next one if a gateway does not respond, cannot be reached, or answers 408 or 503 before the callee rings. A gateway that sends `Retry-After` with 503 gets no calls until then. Those that do not respond to OPTIONS requests are tried last.';
const GATEWAY = {
  priority: Type.Integer({ minimum: 0, maximum: 65_535, description: 'Lower ones are tried first. Default: 0.' }),
  weight: Type.Integer({
    minimum: 0,
    maximum: 65_535,
    description: 'Share of the calls among gateways with the same priority. Default: 1.',
  }),
};

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
    description:
      '`sip:host` or `sip:host:port`. The dialed number becomes the user part. `sips:` means the transport `tls`.',
    examples: ['sip:carrier.example:5060'],
  }),
  transport: Type.Enum(['udp', 'tcp', 'tls', 'auto'], { description: TRANSPORT }),
  gateways: Type.Array(
    Type.Object(
      {
        sip_uri: Type.String({ pattern: SIP_URI, maxLength: 300, description: '`sip:host` or `sip:host:port`.' }),
        transport: Type.Optional(
          Type.Enum(['udp', 'tcp', 'tls', 'auto'], {
            description: 'Transport of SIP messages. Default: that of the trunk.',
          }),
        ),
        priority: Type.Optional(GATEWAY.priority),
        weight: Type.Optional(GATEWAY.weight),
      },
      { additionalProperties: false },
    ),
    { maxItems: 16, description: `${GATEWAYS} An empty list leaves only \`sip_uri\`.` },
  ),
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
  register: Type.Boolean({ description: REGISTER }),
  codecs: Type.Array(Type.Enum([...SOUND_CODECS, 'CN']), {
    minItems: 1,
    maxItems: 5,
    uniqueItems: true,
    contains: Type.Enum([...SOUND_CODECS]),
    description: CODECS,
  }),
  media_encryption: Type.Enum(['none', 'optional', 'required'], { description: ENCRYPTION }),
  channels: Type.Integer({ minimum: 0, maximum: 10_000, description: 'Maximum number of simultaneous calls.' }),
  health: Type.Union(
    [
      Type.Object(
        {
          mode: Type.Optional(Type.Enum(['options', 'none'], HEALTH_MODE)),
          interval_seconds: Type.Optional(Type.Integer(HEALTH_INTERVAL)),
        },
        { additionalProperties: false, minProperties: 1 },
      ),
      Type.Enum(['options', 'none'], { description: 'Short for an object with this `mode`.' }),
    ],
    { description: HEALTH },
  ),
  refer: Type.Enum(['none', 'agent', 'both'], { description: REFER }),
  inbound_auth: Type.Union(
    [
      Type.Object(
        {
          username: Type.String({
            minLength: 1,
            maxLength: 128,
            ...USERNAME,
            description: `User name. ${USERNAME.description}`,
          }),
          password: Type.String({
            minLength: 12,
            maxLength: 256,
            ...PLAIN_TEXT,
            writeOnly: true,
            description: `Password. ${PLAIN_TEXT.description}`,
          }),
        },
        { additionalProperties: false },
      ),
      Type.Null(),
    ],
    { description: INBOUND_AUTH },
  ),
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
    gateways: Type.Optional(FIELDS.gateways),
    username: Type.Optional(FIELDS.username),
    password: Type.Optional(FIELDS.password),
    register: Type.Optional({ ...FIELDS.register, default: false }),
    codecs: Type.Optional({ ...FIELDS.codecs, default: ['PCMU', 'PCMA'] }),
    media_encryption: Type.Optional({ ...FIELDS.media_encryption, default: 'none' }),
    channels: Type.Optional({ ...FIELDS.channels, default: 10 }),
    health: Type.Optional(FIELDS.health),
    refer: Type.Optional({ ...FIELDS.refer, default: 'none' }),
    inbound_auth: Type.Optional(FIELDS.inbound_auth),
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
    gateways: Type.Optional(FIELDS.gateways),
    username: Type.Optional(FIELDS.username),
    password: Type.Optional(FIELDS.password),
    register: Type.Optional(FIELDS.register),
    codecs: Type.Optional(FIELDS.codecs),
    media_encryption: Type.Optional(FIELDS.media_encryption),
    channels: Type.Optional(FIELDS.channels),
    health: Type.Optional(FIELDS.health),
    refer: Type.Optional(FIELDS.refer),
    inbound_auth: Type.Optional(FIELDS.inbound_auth),
    allowed_prefixes: Type.Optional(FIELDS.allowed_prefixes),
    numbers: Type.Optional(FIELDS.numbers),
    default_caller_id: Type.Optional(FIELDS.default_caller_id),
    price_per_minute_usd: Type.Optional(FIELDS.price_per_minute_usd),
    status: Type.Optional(Type.Enum(['active', 'disabled'], { description: 'A disabled trunk places no calls.' })),
  },
  { additionalProperties: false, minProperties: 1, examples: [{ channels: 30 }] },
);

const REACHABILITY = Type.Object(
  {
    state: Type.Enum(['unknown', 'up', 'down'], {
      description: '`unknown`: the carrier has not responded yet, the trunk is disabled, or its address was changed.',
    }),
    since: nullable({ ...TimeSchema, description: 'When the state changed. Null if it is `unknown`.' }),
    reason: Type.Enum([...REACHABILITY_REASONS], { description: REASONS }),
  },
  { description: 'Whether the gateway responds.' },
);

const TRUNK_PROPERTIES = {
  id: Type.String({ format: 'uuid', description: 'Id of the trunk.' }),
  name: Type.String({ description: 'Display name.' }),
  sip_uri: Type.String({ description: 'SIP URI of the carrier.' }),
  transport: Type.Enum(['udp', 'tcp', 'tls', 'auto'], { description: TRANSPORT }),
  gateways: Type.Array(
    Type.Object({
      sip_uri: Type.String({ description: 'SIP URI of the gateway.' }),
      transport: Type.Enum(['udp', 'tcp', 'tls', 'auto'], { description: 'Transport of SIP messages.' }),
      ...GATEWAY,
      reachability: REACHABILITY,
    }),
    { description: GATEWAYS },
  ),
  username: nullable(Type.String({ description: 'User name for Digest authentication.' })),
  register: Type.Boolean({ description: REGISTER }),
  registration: nullable(
    Type.Object(
      {
        state: Type.Enum(['registering', 'registered', 'failed'], {
          description: '`registering`: the carrier has not responded yet.',
        }),
        registered_at: nullable({
          ...TimeSchema,
          description: 'When the carrier accepted it. Refreshes do not count.',
        }),
        expires_at: nullable({ ...TimeSchema, description: 'When the carrier forgets it unless it is refreshed.' }),
        last_error: nullable(
          Type.String({
            description:
              'Why the last attempt failed, null if it succeeded: status and reason of the carrier, `no_response`, `transport_error`, `host_not_allowed` or `internal_error`.',
            examples: ['403 Forbidden'],
          }),
        ),
      },
      { description: 'State of the registration.' },
    ),
  ),
  codecs: Type.Array(Type.String(), { description: CODECS }),
  media_encryption: Type.Enum(['none', 'optional', 'required'], { description: ENCRYPTION }),
  channels: Type.Integer({ description: 'Maximum number of simultaneous calls.' }),
  health: Type.Object(
    { mode: Type.Enum(['options', 'none'], HEALTH_MODE), interval_seconds: Type.Integer(HEALTH_INTERVAL) },
    { description: HEALTH },
  ),
  refer: Type.Enum(['none', 'agent', 'both'], { description: REFER }),
  inbound_auth: nullable(
    Type.Object({ username: Type.String({ description: 'User name.' }) }, { description: INBOUND_AUTH }),
  ),
  reachability: {
    ...REACHABILITY,
    description:
      'Whether the carrier responds: `up` if one gateway does, `down` if none does. Changes are sent as `trunk.down` and `trunk.up` to webhooks.',
  },
  reachable: nullable(
    Type.Boolean({ description: 'Whether the carrier responds. Null: `reachability` is `unknown`.' }),
  ),
  reachable_since: nullable({ ...TimeSchema, description: 'When `reachable` changed.' }),
  last_error: nullable(
    Type.String({
      description:
        'Why the carrier refused the last registration; if it did not, why it counts as unreachable. Null: neither.',
    }),
  ),
  registered_at: nullable({ ...TimeSchema, description: 'When the carrier accepted the registration.' }),
  allowed_prefixes: Type.Array(Type.String(), {
    description: 'Prefixes of the numbers that may be called. An empty list allows all.',
  }),
  numbers: Type.Array(E164Schema, { description: 'Numbers that the carrier assigned to the trunk.' }),
  unverified_numbers: Type.Array(E164Schema, {
    description:
      'Those of `numbers` that the trunk only claims: they cannot be rented until they are verified, by POST /dialer/numbers/verifications or by the operator. Numbers of the first workspace are verified. Tandem extension.',
  }),
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
      gateways: [
        {
          sip_uri: EXAMPLE.sip_uri,
          transport: 'udp',
          priority: 0,
          weight: 1,
          reachability: { state: 'up', since: '2026-01-31T09:30:12.000Z', reason: 'options_answered' },
        },
      ],
      username: EXAMPLE.username,
      register: true,
      registration: {
        state: 'registered',
        registered_at: '2026-01-31T09:30:05.000Z',
        expires_at: '2026-01-31T09:40:05.000Z',
        last_error: null,
      },
      codecs: ['PCMU', 'PCMA'],
      media_encryption: 'none',
      channels: 10,
      health: { mode: 'options', interval_seconds: 30 },
      refer: 'none',
      inbound_auth: null,
      reachability: { state: 'up', since: '2026-01-31T09:30:12.000Z', reason: 'options_answered' },
      reachable: true,
      reachable_since: '2026-01-31T09:30:12.000Z',
      last_error: null,
      registered_at: '2026-01-31T09:30:05.000Z',
      allowed_prefixes: [],
      numbers: EXAMPLE.numbers,
      unverified_numbers: [],
      status: 'active',
      default_caller_id: null,
      price_per_minute_usd: EXAMPLE.price_per_minute_usd,
      created_at: '2026-01-31T09:30:00.000Z',
    },
  ],
});

const PROBE_PROPERTIES = {
  sip_uri: Type.String({ description: 'Gateway that was asked.' }),
  transport: Type.String({ description: 'Transport of the gateway.', examples: ['udp'] }),
  at: { ...TimeSchema, description: 'When the response came, or Tandem stopped waiting for it.' },
  sip_status: nullable(Type.Integer({ description: 'SIP status of the response. Null if none came.' })),
  round_trip_ms: nullable(Type.Number({ description: 'Round trip, in milliseconds. Null if no response came.' })),
  error: nullable(
    Type.Enum(['no_response', 'transport_error'], {
      description:
        'Why the gateway counts as unreachable. Null if it responded; any status counts but a 408 or 503 of our own SIP server.',
    }),
  ),
};
const PROBE_EXAMPLE = {
  ...{ sip_uri: EXAMPLE.sip_uri, transport: 'udp', at: '2026-01-31T09:30:12.000Z' },
  ...{ sip_status: 200, round_trip_ms: 23.4, error: null },
};
export const TrunkDetailSchema = Type.Object(
  {
    ...TrunkSchema.properties,
    recent_probes: Type.Array(
      Type.Object({ ...PROBE_PROPERTIES, node: Type.String({ description: 'Node that sent the request.' }) }),
      { description: 'The last 20 OPTIONS requests to the gateways of the trunk, newest first. Tandem extension.' },
    ),
  },
  {
    examples: [
      {
        ...(TrunkSchema as { examples?: Record<string, unknown>[] }).examples?.[0],
        recent_probes: [{ ...PROBE_EXAMPLE, node: 'node-1' }],
      },
    ],
  },
);
export const TrunkProbesSchema = Type.Object(
  { trunk_id: Type.String({ format: 'uuid' }), probes: Type.Array(Type.Object(PROBE_PROPERTIES)) },
  { examples: [{ trunk_id: '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11', probes: [PROBE_EXAMPLE] }] },
);

export function presentProbe({ sipUri, transport, at, sipStatus, roundTripMs, silence }: ProbeOutcome) {
  return {
    ...{ sip_uri: sipUri, transport, at: at.toISOString() },
    ...{ sip_status: sipStatus, round_trip_ms: roundTripMs, error: silence },
  };
}

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
  const registration = presentRegistration(row);
  const isDown = row.reachability === 'down';
  const reachability = {
    state: row.reachability,
    since: row.reachabilitySince?.toISOString() ?? null,
    reason: row.reachabilityReason,
  };
  return {
    id: row.id,
    name: row.name,
    sip_uri: row.sipUri,
    transport: isSips(row.sipUri) ? 'tls' : row.transport,
    gateways: gatewaysOf(row).map((gateway) => presentGateway(row, gateway)),
    username: row.username,
    register: row.register,
    registration,
    codecs: row.codecs,
    media_encryption: row.mediaEncryption,
    channels: row.channels,
    health: { mode: row.healthMode, interval_seconds: row.healthIntervalS },
    refer: row.refer,
    inbound_auth: row.inboundUsername === null ? null : { username: row.inboundUsername },
    reachability,
    reachable: reachability.state === 'unknown' ? null : !isDown,
    reachable_since: reachability.since,
    last_error: registration?.last_error ?? (isDown ? reachability.reason : null),
    registered_at: registration?.registered_at ?? null,
    allowed_prefixes: row.allowedPrefixes,
    numbers: row.numbers,
    unverified_numbers: row.unverifiedNumbers,
    status: row.status,
    default_caller_id: row.defaultCallerId,
    price_per_minute_usd: nanoToUsd(row.pricePerMinuteNano),
    created_at: row.createdAt.toISOString(),
  };
}

function presentGateway(row: TrunkRow, gateway: Gateway) {
  const { sipUri, transport, priority, weight } = gateway;
  const { state = 'unknown' as const, since = null, reason = 'not_checked' as const } = healthOf(row, gateway) ?? {};
  return { sip_uri: sipUri, transport, priority, weight, reachability: { state, since, reason } };
}

function presentRegistration(row: TrunkRow) {
  const isDue = row.register && row.status === 'active';
  if (!row.registrationState && !isDue) return null;
  return {
    state: row.registrationState ?? 'registering',
    registered_at: row.registeredAt?.toISOString() ?? null,
    expires_at: row.registrationExpiresAt?.toISOString() ?? null,
    last_error: row.registrationError ?? null,
  };
}

/** Requires TLS for a trunk with a `sips:` URI. @throws TandemError VALIDATION_FAILED */
export function requireTls(transport: TrunkPatch['transport']): void {
  if (transport === undefined || transport === 'tls') return;
  throw validationFailed([{ path: 'transport', message: 'must be tls, because sip_uri is a sips: URI' }]);
}

/** Maps exactly the fields that were sent. */
function readFields(body: Static<typeof TrunkPatchBody>, { trunkId, secrets }: SealFor): TrunkPatch {
  const patch: TrunkPatch = {};
  if (body.name !== undefined) patch.name = body.name;
  if (body.sip_uri !== undefined) patch.sipUri = requirePort(body.sip_uri);
  if (body.transport !== undefined) patch.transport = body.transport as TrunkTransport;
  if (body.gateways !== undefined) Object.assign(patch, readGateways(body, body.gateways));
  if (patch.sipUri !== undefined && isSips(patch.sipUri)) {
    requireTls(patch.transport);
    patch.transport = 'tls';
  }
  if (body.username !== undefined) patch.username = body.username || null;
  if (body.password !== undefined) {
    patch.passwordEncrypted = body.password ? secrets.seal(body.password, trunkPasswordContext(trunkId)) : null;
  }
  if (body.register !== undefined) patch.register = body.register;
  if (body.codecs !== undefined) patch.codecs = body.codecs;
  if (body.media_encryption !== undefined) patch.mediaEncryption = body.media_encryption as MediaEncryption;
  if (body.channels !== undefined) patch.channels = body.channels;
  const health = typeof body.health === 'string' ? { mode: body.health } : (body.health ?? {});
  if (health.mode !== undefined) patch.healthMode = health.mode as 'options' | 'none';
  if (health.interval_seconds !== undefined) patch.healthIntervalS = health.interval_seconds;
  if (body.refer !== undefined) patch.refer = body.refer as ReferPermission;
  if (body.inbound_auth !== undefined) {
    const { username, password } = body.inbound_auth ?? { username: null, password: null };
    patch.inboundUsername = username;
    patch.inboundPasswordEncrypted =
      password === null ? null : secrets.seal(password, trunkInboundPasswordContext(trunkId));
  }
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

/** The first gateway is the trunk's address. */
function readGateways(
  { sip_uri, transport }: Static<typeof TrunkPatchBody>,
  gateways: NonNullable<Static<typeof TrunkPatchBody>['gateways']>,
): Pick<TrunkPatch, 'gateways' | 'sipUri' | 'transport'> {
  const read: StoredGateway[] = gateways.map((gateway, index) => ({
    sipUri: requirePort(gateway.sip_uri, `gateways.${index}.sip_uri`),
    transport: transportOfGateway(gateway, index),
    priority: gateway.priority ?? 0,
    weight: gateway.weight ?? 1,
  }));
  for (const [index, gateway] of read.entries()) {
    const same = read.findIndex(({ sipUri, transport: by }) => sipUri === gateway.sipUri && by === gateway.transport);
    if (same < index) throw validationFailed([{ path: `gateways.${index}`, message: 'must be listed once' }]);
  }
  const [first] = read;
  if (first === undefined) return { gateways: [] };
  if (sip_uri !== undefined && sip_uri !== first.sipUri) {
    throw validationFailed([{ path: 'gateways.0.sip_uri', message: 'must equal sip_uri, the first gateway' }]);
  }
  if (transport !== undefined && (first.transport ?? transport) !== transport) {
    throw validationFailed([
      { path: 'gateways.0.transport', message: 'must equal transport, that of the first gateway' },
    ]);
  }
  return { gateways: read, sipUri: first.sipUri, ...(first.transport && { transport: first.transport }) };
}

/** The first gateway has the trunk's transport, which also follows from its URI. */
function transportOfGateway({ sip_uri, transport }: { sip_uri: string; transport?: string }, index: number) {
  return index > 0 && isSips(sip_uri) ? 'tls' : ((transport as TrunkTransport | undefined) ?? null);
}

export function isSips(sipUri: string): boolean {
  return /^sips:/i.test(sipUri);
}

function requirePort(sipUri: string, path = 'sip_uri'): string {
  const port = /:(\d{1,5})$/.exec(sipUri)?.[1];
  if (port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)) return sipUri;
  throw validationFailed([{ path, message: 'must have a port from 1 to 65535' }]);
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
