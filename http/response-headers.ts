import type { FastifyContextConfig, FastifySchema } from 'fastify';
import { ERROR_CATALOGUE, type ErrorCode } from '../machines/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Successful responses can report a charge: `billingHeaders`. */
    billed?: boolean;
    /** Successful responses are streams, which an Idempotency-Key does not store. */
    streams?: 'always' | 'on request';
    sends?: readonly OwnHeader[];
  }
}

interface DocumentedHeader {
  description: string;
  schema: { type: 'string' | 'integer'; const?: string; examples?: readonly (string | number)[] };
}

const text = (description: string, example: string): DocumentedHeader => ({
  description,
  schema: { type: 'string', examples: [example] },
});
const count = (description: string, example: number): DocumentedHeader => ({
  description,
  schema: { type: 'integer', examples: [example] },
});
const always = (description: string, value: string): DocumentedHeader => ({
  description,
  schema: { type: 'string', const: value },
});

const COMMON = {
  'x-request-id': text(
    'Id of the request: the one you sent, or a new one. Quote it when you report a problem.',
    '5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42',
  ),
  'x-ratelimit-limit': count('Requests per minute, or per day if that limit is closer.', 60),
  'x-ratelimit-remaining': count('Requests left until the reset.', 59),
  'x-ratelimit-reset': count('When the limit resets, in Unix seconds.', 1_769_850_000),
  'x-content-type-options': always('Keeps browsers from guessing the media type.', 'nosniff'),
  'x-frame-options': always('Keeps browsers from showing the response in a frame.', 'DENY'),
} as const;

const BILLING = {
  'x-credit-balance': text(
    'Wallet balance after the charge, in USD. Only for owners, with a key that may read the wallet, and only if something was charged.',
    '9.99934',
  ),
  'x-credit-charged': text('Charged amount, in USD.', '0.00066'),
  'x-billing-tx': text('Id of the entry in the usage log.', '5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42'),
} as const;

/** Headers of operations that name them in `sends`. */
const OWN = {
  'content-disposition': text('Suggests a file name.', 'attachment; filename="usage-2026-01-31.csv"'),
  etag: text('Version of the object, for If-None-Match and If-Range.', '"bbac-19c13a2f3e0"'),
  'last-modified': text('When the object was stored.', 'Sat, 31 Jan 2026 09:30:00 GMT'),
  'accept-ranges': always('Byte ranges can be requested.', 'bytes'),
} as const;

type OwnHeader = keyof typeof OWN;

const SPECIAL = {
  'x-accel-buffering': always('Stops nginx from buffering the stream. Sent with streams only.', 'no'),
  'retry-after': count('Seconds to wait before a retry.', 5),
  'www-authenticate': always('The authentication scheme.', 'Bearer'),
  'idempotency-replayed': always(
    'Sent if the request repeats an earlier one with the same Idempotency-Key: this is the response to that one.',
    'true',
  ),
  'content-range': text('The part of the object, or its size if the range is outside.', 'bytes 0-1999/48044'),
} as const;

/** Definitions for `components.headers`. */
export const RESPONSE_HEADERS = { ...COMMON, ...BILLING, ...OWN, ...SPECIAL };

/** Properties of an operation that determine its response headers. */
export type HeaderTraits = Pick<FastifyContextConfig, 'idempotent' | 'billed' | 'streams' | 'sends'>;

/** Extension that stores an operation's traits until `complete-document.ts` reads and removes it. */
export const HEADER_TRAITS = 'x-header-traits';

export function withHeaderTraits(
  schema: FastifySchema,
  { idempotent, billed, streams, sends }: HeaderTraits = {},
): FastifySchema {
  return { ...schema, [HEADER_TRAITS]: { idempotent, billed, streams, sends } } as FastifySchema;
}

/** References the headers of a response, by name. `codes`: for an error response. */
export function headersOf(
  { idempotent = false, billed = false, streams, sends = [] }: HeaderTraits,
  { status, codes = [] }: { status: number; codes?: readonly ErrorCode[] },
): Record<string, { $ref: string }> {
  const isSuccess = codes.length === 0;
  const names: (keyof typeof RESPONSE_HEADERS)[] = [
    ...keysOf(COMMON),
    ...(billed && isSuccess ? keysOf(BILLING) : []),
    ...(isSuccess ? sends : []),
    ...(streams !== undefined && isSuccess ? (['x-accel-buffering'] as const) : []),
    ...(idempotent && (isSuccess ? streams !== 'always' : codes.some(isReplayed))
      ? (['idempotency-replayed'] as const)
      : []),
    ...(codes.some(hasRetryAfter) ? (['retry-after'] as const) : []),
    ...(status === 401 ? (['www-authenticate'] as const) : []),
    ...(status === 206 || status === 416 ? (['content-range'] as const) : []),
  ];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Whether an Idempotency-Key can store the error: see `idempotency.ts`. */
export function isReplayed(code: ErrorCode): boolean {
  const { status, retryable } = ERROR_CATALOGUE[code];
  return status < 500 && ![400, 401, 429, 499].includes(status) && !retryable && !BEFORE_THE_KEY.has(code);
}

/** Errors that occur before the key is checked, or because of it. */
const BEFORE_THE_KEY: ReadonlySet<ErrorCode> = new Set([
  'UNSUPPORTED_MEDIA_TYPE',
  'PAYLOAD_TOO_LARGE',
  'CROSS_ORIGIN_REQUEST',
  'WORKSPACE_NOT_FOUND',
  'IDEMPOTENCY_IN_PROGRESS',
  'IDEMPOTENCY_NOT_REPLAYABLE',
  'IDEMPOTENCY_KEY_REUSED',
]);

function hasRetryAfter(code: ErrorCode): boolean {
  const { status, retryable } = ERROR_CATALOGUE[code];
  return status === 429 || status === 503 || (retryable && status < 500);
}

function keysOf<Key extends string>(headers: Readonly<Record<Key, unknown>>): Key[] {
  return Object.keys(headers) as Key[];
}
