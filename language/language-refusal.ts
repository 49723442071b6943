import { type ErrorCode, TandemError } from '../machines/errors.ts';
import { LanguageEngineError, type LanguageEngineErrorCode } from './engine.ts';

/** Converts an engine's failure into the API error for the client. */
export function refusalOf(error: unknown): TandemError {
  if (error instanceof TandemError) return error;
  if (!(error instanceof LanguageEngineError)) {
    return new TandemError('LLM_UNAVAILABLE', 'The language model failed.', {
      cause: error,
      retryAfterS: RETRY_AFTER_S,
    });
  }
  const { code, says, retryAfterS } = REFUSALS[error.code];
  const after = error.retryAfterS ?? retryAfterS;
  return new TandemError(code, `${says}: ${error.message}.`, {
    cause: error,
    ...(after !== null && { retryAfterS: after }),
  });
}

const RETRY_AFTER_S = 5;

const REFUSALS: Record<LanguageEngineErrorCode, { code: ErrorCode; says: string; retryAfterS: number | null }> = {
  unavailable: { code: 'LLM_UNAVAILABLE', says: 'The language model cannot answer', retryAfterS: RETRY_AFTER_S },
  rate_limited: {
    code: 'LLM_RATE_LIMITED',
    says: 'The language model takes no more at the moment',
    retryAfterS: RETRY_AFTER_S,
  },
  timeout: { code: 'LLM_TIMEOUT', says: 'The language model took too long', retryAfterS: RETRY_AFTER_S },
  model_not_found: { code: 'MODEL_NOT_FOUND', says: 'There is no such language model', retryAfterS: null },
  context_too_long: {
    code: 'CONTEXT_LENGTH_EXCEEDED',
    says: 'There is more than the language model can read',
    retryAfterS: null,
  },
  refused: { code: 'LLM_REQUEST_REFUSED', says: 'The language model refuses the request', retryAfterS: null },
};
