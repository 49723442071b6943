import type { CompletionPart, CompletionRequest, LanguageModel } from './llm.ts';

/** One thing that runs language models, behind `LanguageModels`. */
export interface LanguageEngine {
  /** Of the engine, for people and logs, such as `openai` or `llama`. */
  readonly name: string;
  /** @throws LanguageEngineError */
  models(signal: AbortSignal): Promise<LanguageModel[]>;
  /**
   * One attempt. `request.model` is an id of `models`. The last part is `finished`. Ending the iteration or aborting the
   * signal stops the generation.
   * @throws LanguageEngineError; the signal's reason
   */
  stream(request: CompletionRequest & { model: string }): AsyncGenerator<CompletionPart, void>;
  close(): Promise<void>;
}

export type LanguageEngineErrorCode =
  /** Whoever runs it is not there, or broken. */
  | 'unavailable'
  | 'rate_limited'
  | 'timeout'
  | 'model_not_found'
  | 'context_too_long'
  /** It will not do this; the same request again will fail again. */
  | 'refused';

export class LanguageEngineError extends Error {
  override readonly name = 'LanguageEngineError';
  readonly code: LanguageEngineErrorCode;
  /** Seconds after which to try again, where the engine says so. */
  readonly retryAfterS: number | null;
  /** It may fail on this request alone, so that others are not kept from asking. */
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
