import type { CompletionPart, CompletionRequest, LanguageModel } from './llm.ts';

/** One engine that runs language models, behind `LanguageModels`. */
export interface LanguageEngine {
  /** Name of the engine for people and logs, such as `openai` or `llama`. */
  readonly name: string;
  /** @throws LanguageEngineError */
  models(signal: AbortSignal): Promise<LanguageModel[]>;
  /**
   * One attempt. `request.model` is an id from `models`. The last part is `finished`. Ending the iteration or aborting
   * the signal stops the generation.
   * @throws LanguageEngineError; the signal's reason
   */
  stream(request: CompletionRequest & { model: string }): AsyncGenerator<CompletionPart, void>;
  close(): Promise<void>;
}

export type LanguageEngineErrorCode =
  /** The server or process is down or broken. */
  | 'unavailable'
  | 'rate_limited'
  | 'timeout'
  | 'model_not_found'
  | 'context_too_long'
  /** The engine rejects the request and would reject it again. */
  | 'refused';

export class LanguageEngineError extends Error {
  override readonly name = 'LanguageEngineError';
  readonly code: LanguageEngineErrorCode;
  /** Seconds to wait before a retry, if the engine reports them. */
  readonly retryAfterS: number | null;
  /** The failure may concern this request alone, so the circuit breaker does not count it. */
  readonly ofRequest: boolean;

  constructor(
    code: LanguageEngineErrorCode,
    message: string,
    {
      cause,
      retryAfterS = null,
      ofRequest = false,
    }: { cause?: unknown; retryAfterS?: number | null; ofRequest?: boolean } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryAfterS = retryAfterS;
    this.ofRequest = ofRequest;
  }

  get retryable(): boolean {
    return this.code === 'unavailable' || this.code === 'rate_limited' || this.code === 'timeout';
  }
}
