import { type Static, type TSchema, Type } from 'typebox';
import type { SttSettings, TalkContext } from '../../actors/stt/live-stt.ts';
import { TandemError } from '../../machines/errors.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import { nullable } from '../schemas/envelope.ts';
import { compileCheck, validationFailed } from '../validation.ts';
import { CONFIG_FIELDS, readChange, readSettings, SAMPLE_RATES } from './session-settings.ts';

/** A parsed text message. Ignores unknown fields, because clients of other servers send some. */
export type ClientMessage =
  | { type: 'start'; settings: SttSettings; talk: TalkContext | null }
  | { type: 'config'; change: Partial<SttSettings> }
  | { type: 'audio'; bytes: Uint8Array<ArrayBuffer>; format: AudioFormat }
  | { type: 'stop' }
  | { type: 'finalize' }
  | { type: 'keepalive' }
  | { type: 'test'; timestamp: unknown };

/** The message has the wording of the platform specification. */
export class UnknownMessageType extends Error {
  override readonly name = 'UnknownMessageType';
}

/** @throws TandemError `MALFORMED_JSON`, `VALIDATION_FAILED`; UnknownMessageType */
export function readClientMessage(text: string): ClientMessage {
  const message = parse(text);
  const type: unknown = (message as { type?: unknown } | null)?.type;
  const reader =
    typeof type === 'string' && Object.hasOwn(READERS, type) ? READERS[type as keyof typeof READERS] : null;
  if (reader === null) {
    throw new UnknownMessageType(`unknown message type: ${typeof type === 'string' ? type.slice(0, 64) : 'none'}`);
  }
  return reader(message);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TandemError('MALFORMED_JSON', 'A text frame must contain one JSON object.', { cause });
  }
}

const TALK_SCHEMA = Type.Object({
  general: Type.Optional(
    nullable(
      Type.Array(Type.Object({ key: Type.String({ maxLength: 200 }), value: Type.String({ maxLength: 1_000 }) }), {
        maxItems: 100,
      }),
    ),
  ),
  text: Type.Optional(nullable(Type.String({ maxLength: 10_000 }))),
  terms: Type.Optional(nullable(Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 500 }))),
});

const START_SCHEMA = Type.Object({
  languages: CONFIG_FIELDS.languages,
  context: Type.Optional(nullable(TALK_SCHEMA)),
  config: Type.Optional(nullable(Type.Object(CONFIG_FIELDS))),
});

const CONFIG_SCHEMA = Type.Object(CONFIG_FIELDS);

const AUDIO_SCHEMA = Type.Object({
  audio: Type.String(),
  encoding: Type.Enum(['linear', 'mulaw']),
  sample_rate: Type.Enum(SAMPLE_RATES),
  timestamp: Type.Optional(nullable(Type.Integer())),
});

const TEST_SCHEMA = Type.Object({
  message: Type.Optional(Type.Unknown()),
  timestamp: Type.Optional(nullable(Type.Union([Type.Number(), Type.String({ maxLength: 64 })]))),
});

const READERS = {
  start: reader(START_SCHEMA, ({ languages, context, config }) => ({
    type: 'start' as const,
    settings: readSettings({ ...config, ...(languages !== undefined && { languages }) }),
    talk: context ? { general: context.general ?? [], text: context.text ?? null, terms: context.terms ?? [] } : null,
  })),
  config: reader(CONFIG_SCHEMA, (config) => ({ type: 'config' as const, change: readChange(config) })),
  audio: reader(AUDIO_SCHEMA, ({ audio, encoding, sample_rate }) => ({
    type: 'audio' as const,
    bytes: decodeBase64(audio),
    format: {
      encoding: encoding === 'linear' ? ('linear16' as const) : ('mulaw' as const),
      sampleRateHz: sample_rate,
      channels: 1 as const,
    },
  })),
  stop: () => ({ type: 'stop' as const }),
  // Names as in Deepgram's API.
  Finalize: () => ({ type: 'finalize' as const }),
  KeepAlive: () => ({ type: 'keepalive' as const }),
  CloseStream: () => ({ type: 'stop' as const }),
  test: reader(TEST_SCHEMA, ({ timestamp }) => ({ type: 'test' as const, timestamp })),
};

function reader<Schema extends TSchema, Message>(schema: Schema, read: (value: Static<Schema>) => Message) {
  const check = compileCheck(schema);
  return (value: unknown): Message => {
    const refusal = check(value);
    if (refusal !== null) throw refusal;
    return read(value as Static<Schema>);
  };
}

/** Requires base64 with padding (RFC 4648 §4), because Node would skip invalid characters. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw validationFailed([{ path: 'audio', message: 'must be base64 with padding' }]);
  }
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  // Do not use the pool, because the listener takes ownership of the buffer.
  const bytes = Buffer.allocUnsafeSlow((text.length / 4) * 3 - padding);
  bytes.write(text, 'base64');
  return bytes;
}
