import OpenAI from 'openai';
import { refusalNames } from '../../../runtime/refusal-names.ts';
import { RecognizerError } from '../../recognizer.ts';
import { faultOf } from './failure-reason.ts';

/**
 * Converts a failed request into an engine error. Keeps only names of codes from the server's response, because clients
 * see the error and servers repeat keys and texts. For the same reason the package's error is not the cause.
 */
export function serverRefusal(error: unknown, secret: string | null): RecognizerError {
  if (error instanceof RecognizerError) return error;
  if (error instanceof OpenAI.APIUserAbortError) return new RecognizerError('cancelled', 'the utterance was cancelled');
  if (error instanceof OpenAI.APIConnectionTimeoutError) {
    return new RecognizerError('unavailable', 'the transcription server did not answer in time', { retryable: true });
  }
  if (!(error instanceof OpenAI.APIError) || error.status === undefined) {
    const message = `the transcription server cannot be used: ${faultOf(error)}`;
    return new RecognizerError('unavailable', message, { retryable: true });
  }
  const retryAfterS = retryAfterSeconds(error.headers, error.error);
  const names = [`${error.status}`, ...refusalNames(error.error, secret)].join(' ');
  if (error.status === 429) {
    const message = `the transcription server limits us (${names})`;
    return new RecognizerError('rate_limited', message, { retryable: true, retryAfterS });
  }
  const isPassing = error.status >= 500 || error.status === 408;
  const message = `the transcription server ${isPassing ? 'failed' : 'refuses'} (${names})`;
  return new RecognizerError('unavailable', message, { retryable: isPassing, retryAfterS });
}

/** A server that says more than a day does not mean it. */
const LONGEST_WAIT_S = 86_400;

/** RFC 9110, section 10.2.3; else from the body of the error. */
function retryAfterSeconds(headers: Headers | undefined, body: unknown): number | null {
  const header = headers?.get('retry-after') ?? null;
  const fromHeader = header === null ? null : secondsOf(header);
  const fromBody = typeof body === 'object' && body !== null && 'retry_after' in body ? body.retry_after : null;
  const seconds = fromHeader ?? (typeof fromBody === 'number' ? fromBody : null);
  return seconds === null || !Number.isFinite(seconds) || seconds < 0 ? null : Math.min(LONGEST_WAIT_S, seconds);
}

function secondsOf(header: string): number | null {
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}
