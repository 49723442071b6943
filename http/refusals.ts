import { type ERROR_CATALOGUE, type ErrorCode, TandemError } from '../machines/errors.ts';

/** The error envelope of every response that is not a success. */
export interface ErrorBody {
  success: false;
  /** Tells the kind of refusal by its status; `Unauthorized` is spelt as the specification has it. */
  error: string;
  message: string;
  code: ErrorCode;
  /** The same again, where the specification has it under this name. */
  error_code?: ErrorCode;
  details?: unknown;
  request_id: string;
  retry_after?: number;
}

/** `Retry-After` is due on 429 and 503 whether or not whoever refused knew a time. */
const DEFAULT_RETRY_AFTER_S = 5;

export function errorBody(refusal: TandemError, requestId: string): ErrorBody {
  const retryAfterS = retryAfterOf(refusal);
  return {
    success: false,
    error: ERROR_TYPES[refusal.status] ?? 'internal_error',
    message: refusal.message,
    code: refusal.code,
    ...(refusal.code.endsWith('_CONCURRENCY_LIMIT') ? { error_code: refusal.code } : {}),
    ...(refusal.details === undefined ? {} : { details: refusal.details }),
    request_id: requestId,
    ...(retryAfterS === null ? {} : { retry_after: retryAfterS }),
  };
}

/** Whole seconds, at least 1; null unless the status is 429 or 503. */
export function retryAfterOf(refusal: TandemError): number | null {
  // What has to be configured first is not there in a second.
  if (!refusal.retryable || (refusal.status !== 429 && refusal.status !== 503)) return null;
  return Math.max(1, Math.ceil(refusal.retryAfterS ?? DEFAULT_RETRY_AFTER_S));
}

/** Whatever was thrown while a request was handled, as a row of the catalogue. The cause is kept for the log. */
export function toRefusal(thrown: unknown, { bodyLimitBytes = 64 * 1024 } = {}): TandemError {
  if (thrown instanceof TandemError) return thrown;
  const error = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const code = typeof error.code === 'string' ? error.code : '';
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const message = `The body is larger than ${bodyLimitBytes / 1024} KiB.`;
    return new TandemError('PAYLOAD_TOO_LARGE', message, { cause: thrown });
  }
  const known = FRAMEWORK_ERRORS[code];
  if (known) return new TandemError(known.code, known.message, { cause: thrown });
  if (isStorageOutage(code)) {
    return new TandemError('STORAGE_UNAVAILABLE', 'The database cannot be reached. Try again shortly.', {
      cause: thrown,
    });
  }
  // SQLSTATE class 22: a value the schemas let through does not fit its column.
  if (/^22[0-9A-Z]{3}$/.test(code)) {
    return new TandemError('VALIDATION_FAILED', 'A value in the request cannot be stored.', { cause: thrown });
  }
  if (typeof error.statusCode === 'number' && error.statusCode >= 400 && error.statusCode < 500) {
    return new TandemError('VALIDATION_FAILED', 'The request is malformed.', { cause: thrown });
  }
  return new TandemError('INTERNAL', 'Something went wrong here. The request id helps to find it.', { cause: thrown });
}

export const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'Unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  416: 'range_not_satisfiable',
  422: 'unprocessable_content',
  429: 'too_many_requests',
  499: 'client_closed_request',
  500: 'internal_error',
  503: 'service_unavailable',
  504: 'gateway_timeout',
} satisfies Record<(typeof ERROR_CATALOGUE)[ErrorCode]['status'], string>;

const FRAMEWORK_ERRORS: Readonly<Record<string, { code: ErrorCode; message: string }>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'Send the body as application/json.' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: { code: 'MALFORMED_JSON', message: 'The body is not as long as Content-Length.' },
  FST_ERR_BAD_URL: { code: 'VALIDATION_FAILED', message: 'The URL is not valid: percent-encode it as UTF-8.' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'NOT_FOUND', message: 'There is nothing at this address.' },
};

/** The client library's names for a connection that is not there, the system's, and Postgres's (SQLSTATE). */
function isStorageOutage(code: string): boolean {
  return (
    /^(CONNECTION_|CONNECT_TIMEOUT)/.test(code) ||
    /^(ECONN|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)/.test(code) ||
    // 08: connection; 53: resources; 57P: shutting down or starting; 40: serialisation, deadlock; 55P03: lock timeout.
    /^(08|53|40)[0-9A-Z]{3}$|^57P0[0-9]$|^57014$|^55P03$/.test(code)
  );
}
