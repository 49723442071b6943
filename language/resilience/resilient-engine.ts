import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  ExponentialBackoff,
  handleWhen,
} from 'cockatiel';
import { type LanguageEngine, LanguageEngineError } from '../engine.ts';
import type { CompletionPart, CompletionRequest, LanguageModel } from '../llm.ts';
import { type LanguageClock, pause } from './language-clock.ts';
import { ModelTurns } from './model-turns.ts';
import { patiently } from './patience.ts';

export interface ResilienceOptions {
  /** Answers that one model gives at a time. */
  concurrency: number;
  clock: LanguageClock;
}

type EngineRequest = CompletionRequest & { model: string };

/**
 * An engine that may fail. A request waits for its model's turn; what fails before its first part is tried again, soon and
 * not at once. After some failures in a row nobody asks any more, until one request finds out whether it works again.
 */
export class ResilientEngine {
  readonly engine: LanguageEngine;
  readonly #options: ResilienceOptions;
  readonly #breaker: CircuitBreakerPolicy;
  /** By model, those that somebody uses or waits for. */
  readonly #turns = new Map<string, ModelTurns>();
  /** By the system's clock, as the breaker has it. */
  #askAgainAtMs = 0;

  constructor(engine: LanguageEngine, options: ResilienceOptions) {
    this.engine = engine;
    this.#options = options;
    this.#breaker = circuitBreaker(handleWhen(isFailureOfEngine), {
      breaker: new ConsecutiveBreaker(FAILURES_IN_A_ROW),
      halfOpenAfter: new DelegateBackoff(({ attempt }) => {
        const forMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
        this.#askAgainAtMs = Date.now() + forMs;
        return forMs;
      }),
    });
  }

  /** @throws LanguageEngineError; the signal's reason */
  async models(signal: AbortSignal): Promise<LanguageModel[]> {
    this.#refuseWhileBroken();
    return await this.#attempt(signal, () => this.engine.models(signal));
  }

  /** @throws LanguageEngineError; the signal's reason */
  async *stream(request: EngineRequest): AsyncGenerator<CompletionPart, void> {
    const { signal, patienceMs = PATIENCE_MS } = request;
    this.#refuseWhileBroken();
    const turns = this.#turnsOf(request.model);
    const giveBack = await turns.take({ patienceMs, signal });
    try {
      const { first, parts } = await this.#begin(request, patienceMs);
      try {
        yield first.value;
        yield* parts;
      } finally {
        await parts.return();
      }
    } finally {
      giveBack();
      if (turns.isIdle) this.#turns.delete(request.model);
    }
  }

  /** Resolves with the first part: until then nothing was told, and it can be tried again. */
  async #begin(request: EngineRequest, patienceMs: number) {
    const { signal, retries = RETRIES } = request;
    const { clock } = this.#options;
    let backoff = new ExponentialBackoff({ initialDelay: FIRST_RETRY_MS, maxDelay: LONGEST_RETRY_MS }).next();
    for (let attempt = 0; ; attempt++) {
      this.#refuseWhileBroken();
      try {
        return await this.#attempt(signal, async () => {
          const parts = patiently((own) => this.engine.stream({ ...request, signal: own }), {
            patienceMs,
            signal,
            clock,
          });
          const first = await parts.next();
          if (first.done) throw new LanguageEngineError('unavailable', 'the language model ended without an answer');
          return { parts, first };
        });
      } catch (error) {
        signal.throwIfAborted();
        const askedMs = waitAskedFor(error);
        if (!isWorthARetry(error) || attempt >= retries || askedMs > LONGEST_RETRY_MS) throw error;
        await pause(Math.max(askedMs, backoff.duration), { signal, clock });
        backoff = backoff.next(undefined);
      }
    }
  }

  /** That somebody left shows nothing of the engine. */
  async #attempt<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const asked = () =>
      ask().catch((error: unknown) => {
        throw signal.aborted ? new Abandoned() : error;
      });
    try {
      return await this.#breaker.execute(asked);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  #turnsOf(model: string): ModelTurns {
    const turns = this.#turns.get(model) ?? new ModelTurns({ ...this.#options, places: this.#options.concurrency });
    this.#turns.set(model, turns);
    return turns;
  }

  /** While one request finds out, the others are refused too: to wait for it might take a minute. */
  #refuseWhileBroken(): void {
    const { state } = this.#breaker;
    const leftMs = this.#askAgainAtMs - Date.now();
    if (state === CircuitState.Closed || (state === CircuitState.Open && leftMs <= 0)) return;
    const failure = this.#breaker.lastFailure;
    const last = failure !== undefined && 'error' in failure ? failure.error : null;
    // Others are errors of a library, whose words nobody checked.
    const why = last instanceof LanguageEngineError ? `: ${last.message}` : '';
    throw new LanguageEngineError('unavailable', `it failed several times in a row${why}`, {
      retryAfterS: Math.max(1, Math.ceil(leftMs / 1000)),
    });
  }
}

class Abandoned extends Error {}

const PATIENCE_MS = 60_000;
const RETRIES = 2;
const FIRST_RETRY_MS = 250;
/** Whoever waits for an answer does not wait longer than this for another attempt. */
const LONGEST_RETRY_MS = 4_000;
const FAILURES_IN_A_ROW = 5;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;

/** It is not there; what it refuses, and that it has much to do, shows that it is. */
function isFailureOfEngine(error: Error): boolean {
  if (error instanceof LanguageEngineError) {
    return !error.ofRequest && (error.code === 'unavailable' || error.code === 'timeout');
  }
  return !(error instanceof Abandoned);
}

/** Whoever waited in vain once has waited long enough. */
function isWorthARetry(error: unknown): boolean {
  return error instanceof LanguageEngineError && error.retryable && error.code !== 'timeout';
}

function waitAskedFor(error: unknown): number {
  return error instanceof LanguageEngineError ? 1000 * (error.retryAfterS ?? 0) : 0;
}
