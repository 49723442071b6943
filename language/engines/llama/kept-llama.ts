import { setTimeout as wait } from 'node:timers/promises';
import { BackOff } from '../../../runtime/back-off.ts';
import { raceAbort } from '../../../runtime/waiting.ts';
import { LanguageEngineError } from '../../engine.ts';
import { LlamaProcess, type LlamaProcessOptions, NotLoadedError } from './llama-process.ts';

export interface KeptLlamaOptions {
  process: LlamaProcessOptions;
  /** Pause before the first restart. Doubles with each exit that no answer preceded. */
  firstPauseMs: number;
  onTrouble: (message: string) => void;
}

const LONGEST_PAUSE_MS = 60_000;

/**
 * Keeps the process of a model: starts it on the first request, and again after a crash and a pause. A model that
 * failed to load is retried on the next request after the pause, because the file may have been replaced.
 */
export class KeptLlama {
  readonly #options: KeptLlamaOptions;
  readonly #closed = new AbortController();
  #process: LlamaProcess | null = null;
  readonly #backOff: BackOff;
  /** Until then, requests fail with `trouble`. */
  #pauseUntil = 0;
  #trouble: Error | null = null;

  constructor(options: KeptLlamaOptions) {
    this.#options = options;
    this.#backOff = new BackOff({ firstMs: options.firstPauseMs, longestMs: LONGEST_PAUSE_MS });
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Resolves once a process has loaded its model. @throws LanguageEngineError `unavailable`; the signal's reason */
  async process(signal: AbortSignal): Promise<LlamaProcess> {
    signal.throwIfAborted();
    const process = this.#process ?? this.#start();
    try {
      await raceAbort(process.loaded, signal);
      return process;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#unavailable(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Call after an answer. Resets the pause. */
  answered(): void {
    this.#backOff.reset();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#process?.close();
  }

  #start(): LlamaProcess {
    if (this.#closed.signal.aborted) throw new LanguageEngineError('unavailable', 'the engine was closed');
    if (this.#trouble !== null && performance.now() < this.#pauseUntil) throw this.#unavailable(this.#trouble);
    const process = new LlamaProcess(this.#options.process);
    this.#process = process;
    void process.ended.then(() => this.#afterEnd(process));
    return process;
  }

  #afterEnd({ failure }: LlamaProcess): void {
    this.#process = null;
    if (this.#closed.signal.aborted) return;
    const pauseMs = this.#backOff.next();
    this.#pauseUntil = performance.now() + pauseMs;
    this.#trouble = failure;
    this.#options.onTrouble(failure?.message ?? 'the process of the model ended');
    if (!(failure instanceof NotLoadedError)) void this.#startAgain(pauseMs);
  }

  /** Restarts the process ahead of the next request. */
  async #startAgain(pauseMs: number): Promise<void> {
    try {
      await wait(pauseMs, undefined, { signal: this.#closed.signal, ref: false });
      if (this.#process === null) this.#start();
    } catch {
      // Closed, or the next request reports why it does not start.
    }
  }

  #unavailable(cause: Error): LanguageEngineError {
    const retryAfterS = Math.max(1, Math.ceil((this.#pauseUntil - performance.now()) / 1000));
    return new LanguageEngineError('unavailable', cause.message, { cause, retryAfterS });
  }
}
