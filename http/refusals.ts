import { type ERROR_CATALOGUE, type ErrorCode, TandemError } from '../machines/errors.ts';
import { isDiskFull } from '../runtime/disk-full.ts';
import { isStorageOutage } from '../storage/database.ts';

export interface ErrorBody {
  success: false;
  /** Error type, derived from the status. The platform specification spells it `Unauthorized`. */
  error: string;
  message: string;
  code: ErrorCode;
  /** Same as `code`, where the platform specification uses this name. */
  error_code?: ErrorCode;
  details?: unknown;
  request_id: string;
  retry_after?: number;
}

/** 429 and 503 always have `Retry-After`, even if the error gives no time. */
const DEFAULT_RETRY_AFTER_S = 5;
/** For errors that only a changed setting ends. */
const RETRY_AFTER_NEW_SETTINGS_S = 3600;

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

/** Whole seconds, at least 1. Null unless the status is 429 or 503, or the error gives a time. */
export function retryAfterOf(refusal: TandemError): number | null {
  if (refusal.status !== 429 && refusal.status !== 503 && refusal.retryAfterS === null) return null;
  const defaultS = refusal.retryable ? DEFAULT_RETRY_AFTER_S : RETRY_AFTER_NEW_SETTINGS_S;
  return Math.max(1, Math.ceil(refusal.retryAfterS ?? defaultS));
}

/** Converts anything thrown to a catalogue error. Keeps the cause for the log. */
export function toRefusal(thrown: unknown, { bodyLimitBytes = 64 * 1024 } = {}): TandemError {
  if (thrown instanceof TandemError) return thrown;
  const error = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const code = typeof error.code === 'string' ? error.code : '';
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const message = `The body must be at most ${bodyLimitBytes / 1024} KiB.`;
    return new TandemError('PAYLOAD_TOO_LARGE', message, { cause: thrown });
  }
  const known = FRAMEWORK_ERRORS[code];
  if (known) return new TandemError(known.code, known.message, { cause: thrown });
  if (isStorageOutage(thrown)) {
    return new TandemError('STORAGE_UNAVAILABLE', 'The database cannot be reached. Try again shortly.', {
      cause: thrown,
    });
  }
  if (isDiskFull(thrown)) {
    const message = 'The disk of the server is full. Try again later.';
    return new TandemError('STORAGE_UNAVAILABLE', message, { cause: thrown });
  }
  // SQLSTATE class 22: a value passed the schema but does not fit its column.
  if (/^22[0-9A-Z]{3}$/.test(code)) {
    return new TandemError(
      'VALIDATION_FAILED',
      'A value in the request cannot be stored. Check its length and range.',
      {
        cause: thrown,
      },
    );
  }
  if (typeof error.statusCode === 'number' && error.statusCode >= 400 && error.statusCode < 500) {
    return new TandemError('VALIDATION_FAILED', 'The request is malformed.', { cause: thrown });
  }
  return new TandemError('INTERNAL', 'Internal error. Report it with the request id.', { cause: thrown });
}

export const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'Unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  410: 'gone',
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
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'MALFORMED_JSON',
    message: 'The length of the body differs from Content-Length.',
  },
  FST_ERR_BAD_URL: { code: 'VALIDATION_FAILED', message: 'The URL is invalid. Percent-encode it as UTF-8.' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'NOT_FOUND', message: 'No such path. GET /openapi.json lists all operations.' },
};
