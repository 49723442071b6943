import OpenAI from 'openai';
import { RecognizerError } from '../../recognizer.ts';
import { reasonOf } from './failure-reason.ts';

/**
 * What a failed request means to whoever asked. The server's words are for the operator; they are cut, and must not
 * carry the key, which some servers repeat. For the same reason the package's own error is not kept as the cause.
 */
export function serverRefusal(error: unknown, secret: string | null): RecognizerError {
  if (error instanceof RecognizerError) return error;
  if (error instanceof OpenAI.APIUserAbortError) return new RecognizerError('cancelled', 'the utterance was cancelled');
  if (error instanceof OpenAI.APIConnectionTimeoutError) {
    return new RecognizerError('unavailable', 'the transcription server did not answer in time', { retryable: true });
  }
  if (!(error instanceof OpenAI.APIError) || error.status === undefined) {
    const reason = tellable(reasonOf(error), secret);
    const message = `the transcription server cannot be used: ${reason}`;
    return new RecognizerError('unavailable', message, { retryable: true });
  }
  const retryAfterS = retryAfterSeconds(error.headers, error.error);
  const said = tellable(error.message, secret);
  if (error.status === 429) {
    const message = `the transcription server limits us: ${said}`;
    return new RecognizerError('rate_limited', message, { retryable: true, retryAfterS });
  }
  const isPassing = error.status >= 500 || error.status === 408;
  const message = `the transcription server ${isPassing ? 'failed' : 'refuses'}: ${said}`;
  return new RecognizerError('unavailable', message, { retryable: isPassing, retryAfterS });
}

/** Beyond a day a server does not mean it. */
const LONGEST_WAIT_S = 86_400;
const MOST_SAID_CHARACTERS = 200;

/** RFC 9110, section 10.2.3; else what the body of the error says. */
function retryAfterSeconds(headers: Headers | undefined, body: unknown): number | null {
  const header = headers?.get('retry-after') ?? null;
  const fromHeader = header === null ? null : secondsOf(header);
  const told = typeof body === 'object' && body !== null && 'retry_after' in body ? body.retry_after : null;
  const seconds = fromHeader ?? (typeof told === 'number' ? told : null);
  return seconds === null || !Number.isFinite(seconds) || seconds < 0 ? null : Math.min(LONGEST_WAIT_S, seconds);
}

function secondsOf(header: string): number | null {
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

function tellable(text: string, secret: string | null): string {
  const safe = secret === null ? text : text.replaceAll(secret, '***');
  return safe.replace(/\s+/g, ' ').slice(0, MOST_SAID_CHARACTERS);
}
