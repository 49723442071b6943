import { ExponentialBackoff } from 'cockatiel';
import type { Clock } from '../../runtime/clock.ts';
import { pause } from '../../runtime/waiting.ts';
import { type LanguageEngine, LanguageEngineError } from '../engine.ts';
import type { CompletionPart, CompletionRequest, LanguageModel } from '../llm.ts';
import { Breaker } from './breaker.ts';
import { ModelTurns } from './model-turns.ts';
import { patiently } from './patience.ts';

export interface ResilienceOptions {
  /** Concurrent answers per model. */
  concurrency: number;
  clock: Clock;
}

type EngineRequest = CompletionRequest & { model: string };

/**
 * Wraps an engine that may fail. A request queues for its model's turn. A failure before the first part is retried
 * after a short delay. After several consecutive failures of a model, the circuit breaker rejects requests until a
 * trial succeeds.
 */
export class ResilientEngine {
  readonly engine: LanguageEngine;
  readonly #options: ResilienceOptions;
  /**
   * Separate from the models' breakers: a server may answer requests without listing models, or serve one model and
   * fail on another.
   */
  readonly #listBreaker: Breaker;
  /** By model, listed or configured. */
  readonly #breakers = new Map<string, Breaker>();
  /** By model, while requests run or wait. */
  readonly #turns = new Map<string, ModelTurns>();

  constructor(engine: LanguageEngine, options: ResilienceOptions) {
    this.engine = engine;
    this.#options = options;
    this.#listBreaker = new Breaker(options.clock);
  }

  /** @throws LanguageEngineError; the signal's reason */
  async models(signal: AbortSignal): Promise<LanguageModel[]> {
    return await this.#listBreaker.attempt(signal, () => this.engine.models(signal));
  }

  /** @throws LanguageEngineError; the signal's reason */
  async *stream(request: EngineRequest): AsyncGenerator<CompletionPart, void> {
    const { signal, patienceMs = PATIENCE_MS, turnWithinMs = patienceMs, onBehalfOf = '' } = request;
    this.#breakerOf(request.model).refuseWhileBroken();
    const turns = this.#turnsOf(request.model);
    const release = await turns.take({ onBehalfOf, patienceMs: turnWithinMs, signal });
    try {
      const { first, parts } = await this.#begin(request, patienceMs);
      try {
        yield first.value;
        yield* parts;
      } finally {
        await parts.return();
      }
    } finally {
      release();
      if (turns.isIdle) this.#turns.delete(request.model);
    }
  }

  /** Resolves with the first part. Until then nothing has been emitted, so a retry is safe. */
  async #begin(request: EngineRequest, patienceMs: number) {
    const { signal, retries = RETRIES } = request;
    const { clock } = this.#options;
    const breaker = this.#breakerOf(request.model);
    let backoff = new ExponentialBackoff({ initialDelay: FIRST_RETRY_MS, maxDelay: LONGEST_RETRY_MS }).next();
    for (let attempt = 0; ; attempt++) {
      breaker.refuseWhileBroken();
      try {
        return await breaker.attempt(signal, async () => {
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

  #breakerOf(model: string): Breaker {
    const breaker = this.#breakers.get(model) ?? new Breaker(this.#options.clock);
    this.#breakers.set(model, breaker);
    return breaker;
  }

  #turnsOf(model: string): ModelTurns {
    const turns = this.#turns.get(model) ?? new ModelTurns({ ...this.#options, places: this.#options.concurrency });
    this.#turns.set(model, turns);
    return turns;
  }
}

const PATIENCE_MS = 60_000;
const RETRIES = 2;
const FIRST_RETRY_MS = 250;
/** Longest delay before a retry, because a client waits for the answer. */
const LONGEST_RETRY_MS = 4_000;

/** A timeout is not retried: the client has waited long enough. */
function isWorthARetry(error: unknown): boolean {
  return error instanceof LanguageEngineError && error.retryable && error.code !== 'timeout';
}

function waitAskedFor(error: unknown): number {
  return error instanceof LanguageEngineError ? 1000 * (error.retryAfterS ?? 0) : 0;
}
