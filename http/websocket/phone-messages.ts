import { type Static, type TSchema, Type } from 'typebox';
import type { PhoneRequest } from '../../actors/phones/phone-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { compileCheck } from '../validation.ts';

/** A parsed message of a phone. The reply repeats the client's `id`. */
export interface PhoneMessage {
  id: string | number;
  request: PhoneRequest | { type: 'ping' | 'bye' };
}

/** `id` is null unless the message has a valid one. */
export class InvalidPhoneMessage extends Error {
  override readonly name = 'InvalidPhoneMessage';
  readonly id: string | number | null;
  readonly refusal: TandemError;

  constructor(id: string | number | null, refusal: TandemError) {
    super(refusal.message);
    this.id = id;
    this.refusal = refusal;
  }
}

/** @throws InvalidPhoneMessage */
export function readPhoneMessage(text: string): PhoneMessage {
  const message = parse(text);
  const { id, type } = (message ?? {}) as { id?: unknown; type?: unknown };
  if (!isId(id)) {
    throw new InvalidPhoneMessage(null, invalid('id must be an integer or a string of 1 to 64 characters.'));
  }
  const read = typeof type === 'string' && Object.hasOwn(READERS, type) ? READERS[type as keyof typeof READERS] : null;
  if (read === null) throw new InvalidPhoneMessage(id, invalid('type is not a known message type.'));
  const request = read(message);
  if (request instanceof TandemError) throw new InvalidPhoneMessage(id, request);
  return { id, request };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const refusal = new TandemError('MALFORMED_JSON', 'A frame must contain one JSON object.', { cause });
    throw new InvalidPhoneMessage(null, refusal);
  }
}

function isId(id: unknown): id is string | number {
  return Number.isSafeInteger(id) || (typeof id === 'string' && id.length >= 1 && id.length <= 64);
}

function invalid(message: string): TandemError {
  return new TandemError('VALIDATION_FAILED', message);
}

const CALL_ID = Type.String({ minLength: 1, maxLength: 64 });
const MEDIA_ID = Type.String({ minLength: 1, maxLength: 64 });
const OF_CALL = Type.Object({ call_id: CALL_ID });
const OF_TRANSPORT = Type.Object({ call_id: CALL_ID, transport_id: MEDIA_ID });

const DTLS = Type.Object({
  call_id: CALL_ID,
  transport_id: MEDIA_ID,
  dtls_parameters: Type.Object({
    role: Type.Enum(['auto', 'client', 'server']),
    fingerprints: Type.Array(
      Type.Object({
        algorithm: Type.Enum(['sha-1', 'sha-224', 'sha-256', 'sha-384', 'sha-512']),
        value: Type.String({ pattern: '^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){19,63}$' }),
      }),
      { minItems: 1, maxItems: 8 },
    ),
  }),
});

/** The server decides on mediasoup-client's other parameters. */
const PRODUCE = Type.Object({
  call_id: CALL_ID,
  transport_id: MEDIA_ID,
  rtp_parameters: Type.Object({
    mid: Type.Optional(Type.String({ minLength: 1, maxLength: 16 })),
    codecs: Type.Array(
      Type.Object({ mimeType: Type.String(), payloadType: Type.Integer({ minimum: 0, maximum: 127 }) }),
      {
        minItems: 1,
        maxItems: 32,
      },
    ),
    encodings: Type.Array(Type.Object({ ssrc: Type.Integer({ minimum: 1, maximum: 0xffff_ffff }) }), {
      minItems: 1,
      maxItems: 1,
    }),
    rtcp: Type.Optional(Type.Object({ cname: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) })),
  }),
});

const DTMF = Type.Object({
  call_id: CALL_ID,
  digit: Type.String({ pattern: '^[0-9*#A-D]$' }),
  duration_ms: Type.Optional(Type.Integer({ minimum: 40, maximum: 5_000 })),
});

const READERS = {
  answer: reader(OF_CALL, ({ call_id: callId }) => ({ type: 'answer', callId })),
  decline: reader(OF_CALL, ({ call_id: callId }) => ({ type: 'decline', callId })),
  hangup: reader(OF_CALL, ({ call_id: callId }) => ({ type: 'hangup', callId })),
  create_transport: reader(
    Type.Object({ call_id: CALL_ID, direction: Type.Enum(['send', 'recv']) }),
    ({ call_id: callId, direction }) => ({ type: 'create_transport', callId, direction }),
  ),
  connect_transport: reader(DTLS, ({ call_id: callId, transport_id: transportId, dtls_parameters }) => {
    const { role, fingerprints } = dtls_parameters;
    const known = fingerprints.map(({ algorithm, value }) => ({ algorithm, value }));
    return { type: 'connect_transport', callId, transportId, dtlsParameters: { role, fingerprints: known } };
  }),
  restart_ice: reader(OF_TRANSPORT, ({ call_id: callId, transport_id: transportId }) => {
    return { type: 'restart_ice', callId, transportId };
  }),
  produce: reader(PRODUCE, ({ call_id: callId, transport_id: transportId, rtp_parameters: parameters }) => {
    const codec = parameters.codecs.find(({ mimeType }) => mimeType.toLowerCase() === 'audio/pcmu');
    if (codec === undefined) return invalid('rtp_parameters.codecs must contain audio/PCMU.');
    const { ssrc } = parameters.encodings[0]!;
    const voice = { payloadType: codec.payloadType, ssrc, mid: parameters.mid, cname: parameters.rtcp?.cname };
    return { type: 'produce', callId, transportId, voice };
  }),
  consume: reader(OF_TRANSPORT, ({ call_id: callId, transport_id: transportId }) => {
    return { type: 'consume', callId, transportId };
  }),
  resume_consumer: reader(
    Type.Object({ call_id: CALL_ID, consumer_id: MEDIA_ID }),
    ({ call_id: callId, consumer_id: consumerId }) => ({ type: 'resume_consumer', callId, consumerId }),
  ),
  dtmf: reader(DTMF, ({ call_id: callId, digit, duration_ms: durationMs = 100 }) => {
    return { type: 'dtmf', callId, digit, durationMs };
  }),
  ping: () => ({ type: 'ping' }),
  bye: () => ({ type: 'bye' }),
} satisfies Record<string, (value: unknown) => PhoneMessage['request'] | TandemError>;

function reader<Schema extends TSchema>(schema: Schema, read: (value: Static<Schema>) => PhoneRequest | TandemError) {
  const check = compileCheck(schema);
  return (value: unknown): PhoneRequest | TandemError => check(value) ?? read(value as Static<Schema>);
}
