import { type DestinationStream, type Level, type Logger, type LoggerOptions, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

export interface CreateLoggerOptions {
  level: Level | 'silent';
  /** Default: standard output, pretty on a terminal and JSON otherwise. */
  destination?: DestinationStream;
}

/**
 * Creates the logger of the process. Messages are constant strings with data in fields. Put data that identifies
 * people, or that they said, under `pii`, which is omitted from the output. Credentials in the usual fields are masked.
 */
export function createLogger({ level, destination }: CreateLoggerOptions): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    // pino's own redaction took a fifteenth of the CPU time of a request, and looked only two levels deep.
    formatters: {
      level: (label) => ({ level: label }),
      log: withoutSecrets,
    },
    serializers: ERROR_SERIALIZERS,
  };
  const logger = pino(options, destination ?? defaultDestination());
  const { child } = logger;
  // The formatters see no bindings of children.
  logger.child = function (this: Logger, bindings, childOptions) {
    return child.call(this, withoutSecrets(bindings), childOptions);
  } as typeof child;
  return logger;
}

/**
 * Returns an error without its message, because messages of databases and parsers repeat the input, phone numbers
 * included. Keeps class, code and stack frames. Log the message itself as `pii: { message }`.
 */
export function describeError(error: unknown): unknown {
  return describeCauses(error, MAX_CAUSES);
}

/** A chain of causes may be circular. */
const MAX_CAUSES = 5;

function describeCauses(error: unknown, left: number): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code, cause } = error as Error & { code?: unknown };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    type: error.name,
    ...(typeof code === 'string' ? { code } : {}),
    stack: frames.map((line) => line.trim()).slice(0, 12),
    ...(cause === undefined || left === 0 ? {} : { cause: describeCauses(cause, left - 1) }),
  };
}

const ERROR_SERIALIZERS = { err: describeError, error: describeError };

/** In lower case. `pii` below the top; at the top it is omitted. */
const MASKED_FIELDS: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key'],
  ...['password', 'secret', 'callback_secret', 'callbacksecret', 'apikey', 'api_key', 'token', 'signature'],
  'pii',
]);
/** Deeper fields are omitted, so that a circle ends. */
const MOST_LEVELS = 6;

function withoutSecrets(fields: Record<string, unknown>): Record<string, unknown> {
  return masked('pii' in fields ? withoutPii(fields) : fields, 1) as Record<string, unknown>;
}

function withoutPii({ pii: _omitted, ...fields }: Record<string, unknown>): Record<string, unknown> {
  return fields;
}

/** Returns the object itself if it contains nothing to mask. Describes errors that have no serializer. */
function masked(fields: object, level: number): object {
  let copy: Record<string, unknown> | null = null;
  for (const [name, value] of Object.entries(fields)) {
    if (level === 1 && Object.hasOwn(ERROR_SERIALIZERS, name)) continue;
    const shown = MASKED_FIELDS.has(name.toLowerCase()) ? '[redacted]' : maskedValue(value, level);
    if (shown === value) continue;
    copy ??= (Array.isArray(fields) ? [...fields] : { ...fields }) as Record<string, unknown>;
    copy[name] = shown;
  }
  return copy ?? fields;
}

function maskedValue(value: unknown, level: number): unknown {
  if (value instanceof Error) return describeError(value);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  if ('toJSON' in value && typeof value.toJSON === 'function') return maskedValue(value.toJSON(), level + 1);
  return level < MOST_LEVELS ? masked(value, level + 1) : undefined;
}

function defaultDestination(): DestinationStream {
  if (!process.stdout.isTTY) return pino.destination({ dest: 1, sync: true });
  return pretty({ colorize: true, translateTime: 'HH:MM:ss.l', sync: true });
}
