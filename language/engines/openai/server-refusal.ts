import OpenAI from 'openai';
import { refusalNames } from '../../../runtime/refusal-names.ts';
import { LanguageEngineError, type LanguageEngineErrorCode } from '../../engine.ts';
import { UnusableAnswer } from './bounded-fetch.ts';

/**
 * What a failed request means to whoever asked. What the server writes is left out but for names of codes and fields, as
 * servers repeat prompts and keys; for the same reason the package's error is not kept as the cause.
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
  // A template that a message breaks is a 500 of llama-server.
  return new LanguageEngineError(code, message, { retryAfterS, ofRequest: refusal.status === 500 });
}

/** The words of a refusal, which are looked at and not repeated. '' when it is none that sending less would mend. */
export function wordsOfRefusal(error: unknown): string {
  if (!(error instanceof OpenAI.APIError) || (error.status !== 400 && error.status !== 422)) return '';
  return textOf(error.error, 0).slice(0, MOST_WORDS) || 'it does not say why';
}

/** Codes of Node, and what we say ourselves; `fetch` says that it failed, and what lies below says why. */
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
  /** Status, code, type and field, where they are names and nothing else. */
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
/** Beyond a day a server does not mean it. */
const LONGEST_WAIT_S = 86_400;
const MOST_WORDS = 4_000;
/** There is no code for it that all servers know. */
const TOO_LONG =
  /context[_ ](?:length|size|window)|maximum (?:context|input|prompt)|(?:prompt|input|request)[^.]{0,40} too (?:long|large|many)|too many (?:input )?tokens/i;

function readRefusal(error: InstanceType<typeof OpenAI.APIError>, apiKey: string | null): Refusal {
  const body = (error.error ?? {}) as Record<string, unknown>;
  // Inside a stream there is no status, and some servers put it there.
  const told = Number(body.code ?? body.status ?? 0);
  const status = error.status ?? (told >= 400 && told < 600 ? told : 500);
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
  // It is our key that it does not take, which whoever asked cannot change; nor that there is nothing at the address.
  if (status === 401 || status === 403 || status === 405 || status >= 500) return 'unavailable';
  return 'refused';
}

/** All strings of the body: the message is not always where it belongs. */
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
