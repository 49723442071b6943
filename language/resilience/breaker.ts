import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
} from 'cockatiel';
import type { Clock } from '../../runtime/clock.ts';
import { LanguageEngineError } from '../engine.ts';

/**
 * Circuit breaker: after several consecutive failures it rejects requests, until one trial request succeeds. A trial
 * that is aborted proves nothing, so the next request becomes the trial.
 */
export class Breaker {
  readonly #policy: CircuitBreakerPolicy;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** On the monotonic clock. */
  #askAgainAtMs = 0;
  /** The trial request was aborted before it had a result. */
  #isUnproven = false;
  #isFindingOut = false;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
    this.#policy = circuitBreaker(handleWhen(isFailureOfEngine), {
      breaker: new ConsecutiveBreaker(FAILURES_IN_A_ROW),
      halfOpenAfter: new DelegateBackoff(({ attempt }) => {
        const forMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
        this.#askAgainAtMs = clock.monotonicMs() + forMs;
        // The policy would measure the pause on the wall clock. `refuseWhileBroken` measures it instead.
        return Number.NEGATIVE_INFINITY;
      }),
    });
  }

  /**
   * Rejects other requests during a trial too, because the trial may take a minute.
   * @throws LanguageEngineError `unavailable`
   */
  refuseWhileBroken(): void {
    const { state } = this.#policy;
    const leftMs = this.#askAgainAtMs - this.#clock.monotonicMs();
    const mayAsk = state === CircuitState.Closed || (state === CircuitState.Open && leftMs <= 0);
    if (mayAsk && !this.#isFindingOut) return;
    const failure = this.#policy.lastFailure;
    const last = failure !== undefined && 'error' in failure ? failure.error : null;
    // Other errors come from a library. Their messages are not safe to show.
    const why = last instanceof LanguageEngineError ? `: ${last.message}` : '';
    throw new LanguageEngineError('unavailable', `it failed several times in a row${why}`, {
      retryAfterS: Math.max(1, Math.ceil(leftMs / 1000)),
    });
  }

  /** @throws what `ask` throws; LanguageEngineError `unavailable`; the signal's reason */
  async attempt<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    this.refuseWhileBroken();
    const findsOut = this.#isUnproven || this.#policy.state !== CircuitState.Closed;
    this.#isFindingOut = findsOut;
    try {
      const answer = await this.#policy.execute(() =>
        ask().catch((error: unknown) => {
          throw signal.aborted ? new Abandoned() : error;
        }),
      );
      if (findsOut) this.#isUnproven = false;
      return answer;
    } catch (error) {
      if (findsOut) this.#isUnproven = error instanceof Abandoned;
      signal.throwIfAborted();
      throw error;
    } finally {
      if (findsOut) this.#isFindingOut = false;
    }
  }
}

class Abandoned extends Error {}

const FAILURES_IN_A_ROW = 5;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;

/** Counts only errors that mean the engine is down. Refusals and rate limits prove that it runs. */
function isFailureOfEngine(error: Error): boolean {
  if (error instanceof LanguageEngineError) {
    return !error.ofRequest && (error.code === 'unavailable' || error.code === 'timeout');
  }
  return !(error instanceof Abandoned);
}
