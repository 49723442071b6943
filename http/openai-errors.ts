import type { TandemError } from '../machines/errors.ts';
import { type ErrorBody, errorBody } from './refusals.ts';

/** Error in OpenAI's format, with our `code`. */
export interface OpenaiError {
  message: string;
  type: string;
  /** The invalid field, if there is exactly one. */
  param: string | null;
  code: string;
}

/** Whether OpenAI clients call this path, so that errors need their format. */
export function isOpenaiPath(path: string): boolean {
  return path.startsWith('/v1/');
}

/** Envelope with the error in OpenAI's format, for both kinds of clients. */
export function openaiErrorBody(
  refusal: TandemError,
  requestId: string,
): Omit<ErrorBody, 'error'> & { error: OpenaiError } {
  return { ...errorBody(refusal, requestId), error: openaiError(refusal) };
}

export function openaiError({ message, code, status, details }: TandemError): OpenaiError {
  const [first] = Array.isArray(details) ? (details as { path?: unknown }[]) : [];
  const param = typeof first?.path === 'string' ? first.path : null;
  return { message, type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'), param, code };
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  429: 'rate_limit_error',
};
