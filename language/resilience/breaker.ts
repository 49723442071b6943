import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
} from 'cockatiel';
import { LanguageEngineError } from '../engine.ts';

/**
 * After some failures in a row nobody asks any more, until one request finds out whether it works again. That somebody
 * left shows nothing: then the next one finds out.
 */
export class Breaker {
  readonly #policy: CircuitBreakerPolicy;
  /** By the system's clock, as the policy has it. */
  #askAgainAtMs = 0;
  /** Whoever was to find out left before they knew. */
  #isUnproven = false;
  #isFindingOut = false;

  constructor() {
    this.#policy = circuitBreaker(handleWhen(isFailureOfEngine), {
      breaker: new ConsecutiveBreaker(FAILURES_IN_A_ROW),
      halfOpenAfter: new DelegateBackoff(({ attempt }) => {
        const forMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
        this.#askAgainAtMs = Date.now() + forMs;
        return forMs;
      }),
    });
  }

  /**
   * While one request finds out, the others are refused too: to wait for it might take a minute.
   * @throws LanguageEngineError `unavailable`
   */
  refuseWhileBroken(): void {
    const { state } = this.#policy;
    const leftMs = this.#askAgainAtMs - Date.now();
    const mayAsk = state === CircuitState.Closed || (state === CircuitState.Open && leftMs <= 0);
    if (mayAsk && !this.#isFindingOut) return;
    const failure = this.#policy.lastFailure;
    const last = failure !== undefined && 'error' in failure ? failure.error : null;
    // Others are errors of a library, whose words nobody checked.
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

/** It is not there; what it refuses, and that it has much to do, shows that it is. */
function isFailureOfEngine(error: Error): boolean {
  if (error instanceof LanguageEngineError) {
    return !error.ofRequest && (error.code === 'unavailable' || error.code === 'timeout');
  }
  return !(error instanceof Abandoned);
}
