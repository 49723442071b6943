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
    formatters: {
      level: (label) => ({ level: label }),
      log: withoutPii,
    },
    redact: { paths: [...SECRET_PATHS, ...PII_PATHS], censor: '[redacted]' },
    serializers: { err: describeError, error: describeError },
  };
  return pino(options, destination ?? defaultDestination());
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

const SECRET_FIELDS = [
  'authorization',
  'Authorization',
  'cookie',
  'password',
  'secret',
  'callback_secret',
  'callbackSecret',
  'apiKey',
  'api_key',
  'token',
  'signature',
];
/** pino matches whole paths, so each name is listed at the top and one and two levels below it. */
const SECRET_PATHS = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);

/** In nested fields and in bindings of child loggers, personal data is masked instead of omitted. */
const PII_PATHS = ['pii', '*.pii', '*.*.pii'];

function withoutPii(fields: Record<string, unknown>): Record<string, unknown> {
  if (!('pii' in fields)) return fields;
  const { pii: _leftOut, ...rest } = fields;
  return rest;
}

function defaultDestination(): DestinationStream {
  if (!process.stdout.isTTY) return pino.destination({ dest: 1, sync: true });
  return pretty({ colorize: true, translateTime: 'HH:MM:ss.l', sync: true });
}
