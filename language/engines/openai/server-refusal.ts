import OpenAI from 'openai';
import { refusalNames } from '../../../runtime/refusal-names.ts';
import { LanguageEngineError, type LanguageEngineErrorCode } from '../../engine.ts';
import { UnusableAnswer } from './bounded-fetch.ts';

/**
 * Converts a failed request into an engine error. Keeps only names of codes and fields from the server's response,
 * because servers repeat prompts and keys. For the same reason the package's error is not the cause.
 */
export function serverRefusal(error: unknown, { apiKey }: { apiKey: string | null }): LanguageEngineError {
  if (error instanceof LanguageEngineError) return error;
  if (error instanceof OpenAI.APIConnectionTimeoutError) {
    return new LanguageEngineError('timeout', 'the model server did not answer in time');
  }
  if (!(error instanceof OpenAI.APIError) || (error.status === undefined && error.error === undefined)) {
    return new LanguageEngineError('unavailable', `the model server cannot be used: ${reasonOf(error)}`);
  }
  const refusal = readRefusal(error, apiKey);
  const retryAfterS = retryAfterSeconds(error.headers);
  const code = codeOf(refusal);
  const message = `${MEANINGS[code]} (${refusal.names.join(' ')})`;
  // llama-server answers 500 when a message breaks the template.
  return new LanguageEngineError(code, message, { retryAfterS, ofRequest: refusal.status === 500 });
}

/** The text of a rejection, for inspection only. '' if omitting fields cannot help. */
export function wordsOfRefusal(error: unknown): string {
  if (!(error instanceof OpenAI.APIError) || (error.status !== 400 && error.status !== 422)) return '';
  return textOf(error.error, 0).slice(0, MOST_WORDS) || 'it does not say why';
}

/** Codes of Node and our own reasons. `fetch` only says that it failed; its innermost cause says why. */
function reasonOf(error: unknown): string {
  let deepest = error;
  for (let depth = 0; depth < 8 && deepest instanceof Error && deepest.cause instanceof Error; depth++) {
    if (deepest instanceof UnusableAnswer) break;
    deepest = deepest.cause;
  }
  if (deepest instanceof UnusableAnswer) return deepest.message;
  if (deepest instanceof SyntaxError) return 'its response is not JSON';
  const { code } = (deepest ?? {}) as NodeJS.ErrnoException;
  return typeof code === 'string' && /^[A-Z_]{3,40}$/.test(code) ? code : 'the connection failed';
}

interface Refusal {
  status: number;
  /** Status, code, type and field, if they look like names. */
  names: string[];
  words: string;
}

const MEANINGS: Record<LanguageEngineErrorCode, string> = {
  unavailable: 'the model server failed',
  rate_limited: 'the model server limits us',
  timeout: 'the model server did not answer in time',
  model_not_found: 'the model server has no such model',
  context_too_long: 'the messages are longer than the model can take',
  refused: 'the model server refuses the request',
};
/** A server that says more than a day does not mean it. */
const LONGEST_WAIT_S = 86_400;
const MOST_WORDS = 4_000;
/** Servers share no error code for it. */
const TOO_LONG =
  /context[_ ](?:length|size|window)|maximum (?:context|input|prompt)|(?:prompt|input|request)[^.]{0,40} too (?:long|large|many)|too many (?:input )?tokens/i;

function readRefusal(error: InstanceType<typeof OpenAI.APIError>, apiKey: string | null): Refusal {
  const body = (error.error ?? {}) as Record<string, unknown>;
  // Errors inside a stream have no status, but some servers put it into the body.
  const statusInBody = Number(body.code ?? body.status ?? 0);
  const status = error.status ?? (statusInBody >= 400 && statusInBody < 600 ? statusInBody : 500);
  return { status, names: [`${status}`, ...refusalNames(body, apiKey)], words: textOf(body, 0).slice(0, MOST_WORDS) };
}

function codeOf({ status, names, words }: Refusal): LanguageEngineErrorCode {
  if (names.includes('context_length_exceeded') || (status >= 400 && status < 500 && TOO_LONG.test(words))) {
    if (status !== 401 && status !== 403 && status !== 429) return 'context_too_long';
  }
  if (status === 404)
    return names.includes('model_not_found') || /model/i.test(words) ? 'model_not_found' : 'unavailable';
  if (status === 429) return 'rate_limited';
  if (status === 408 || status === 504) return 'timeout';
  // The server rejects our key or the address is wrong, which the client cannot change.
  if (status === 401 || status === 403 || status === 405 || status >= 500) return 'unavailable';
  return 'refused';
}

/** All strings of the body, because servers put the message in different places. */
function textOf(value: unknown, depth: number): string {
  if (typeof value === 'string') return value.slice(0, MOST_WORDS);
  if (typeof value !== 'object' || value === null || depth > 4) return '';
  return Object.values(value)
    .slice(0, 20)
    .map((item) => textOf(item, depth + 1))
    .join(' ')
    .trim();
}

/** RFC 9110, section 10.2.3. */
function retryAfterSeconds(headers: Headers | undefined): number | null {
  const header = headers?.get('retry-after')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(header)) return Math.min(LONGEST_WAIT_S, Math.ceil(Number(header)));
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.min(LONGEST_WAIT_S, Math.max(0, Math.ceil((at - Date.now()) / 1000)));
}
