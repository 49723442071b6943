import type { TandemError } from '../machines/errors.ts';
import { type ErrorBody, errorBody } from './refusals.ts';

/** As OpenAI's clients read an error; `code` is ours. */
export interface OpenaiError {
  message: string;
  type: string;
  /** The field that is wrong, where it is one. */
  param: string | null;
  code: string;
}

/** The older aliases below /v1/ are refused as what they are aliases of. */
const SPEECH_ALIASES = ['/v1/stream', '/v1/transcribe'];

/** Whether OpenAI's clients go there, and their kind of error is due. */
export function speaksOpenai(path: string): boolean {
  return path.startsWith('/v1/') && !SPEECH_ALIASES.includes(path);
}

/** The envelope with OpenAI's error in it, for both kinds of clients. */
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
