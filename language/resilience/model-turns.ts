import { LanguageEngineError } from '../engine.ts';
import { inTime, type LanguageClock } from './language-clock.ts';

export interface ModelTurnsOptions {
  /** Answers at a time. */
  places: number;
  /** Who may wait for a place; default eight times the places. */
  waiting?: number;
  clock: LanguageClock;
}

/**
 * So many answers of a model at a time, and so many who wait for their turn, in the order they came; whoever stops waiting
 * leaves the queue at once. (cockatiel's bulkhead keeps them in it, and forgets those behind them.)
 */
export class ModelTurns {
  readonly #clock: LanguageClock;
  readonly #places: number;
  readonly #mostWaiting: number;
  #taken = 0;
  readonly #queue = new Set<() => void>();

  constructor({ places, waiting = 8 * places, clock }: ModelTurnsOptions) {
    this.#places = places;
    this.#mostWaiting = waiting;
    this.#clock = clock;
  }

  get isIdle(): boolean {
    return this.#taken === 0 && this.#queue.size === 0;
  }

  /**
   * Resolves with what gives the place back; idempotent.
   * @throws LanguageEngineError `rate_limited` when too many wait, or for too long; the signal's reason
   */
  async take({ patienceMs, signal }: { patienceMs: number; signal: AbortSignal }): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken < this.#places) {
      this.#taken += 1;
      return this.#place();
    }
    if (this.#queue.size >= this.#mostWaiting) throw tooMany();
    const turn = Promise.withResolvers<void>();
    const called = () => turn.resolve();
    this.#queue.add(called);
    const onLate = () => {
      throw tooMany();
    };
    try {
      await inTime(turn.promise, { ms: patienceMs, signal, clock: this.#clock, onLate });
    } catch (error) {
      // Called and gone in the same moment: the place is the next one's.
      if (!this.#queue.delete(called)) this.#giveBack();
      throw error;
    }
    return this.#place();
  }

  #place(): () => void {
    let isTaken = true;
    return () => {
      if (isTaken) this.#giveBack();
      isTaken = false;
    };
  }

  /** A place goes from hand to hand, so that nobody who comes by takes it meanwhile. */
  #giveBack(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    this.#queue.delete(next);
    next();
  }
}

const RETRY_AFTER_S = 2;

function tooMany(): LanguageEngineError {
  const message = 'the language model has as much to do as it can; others wait already';
  return new LanguageEngineError('rate_limited', message, { retryAfterS: RETRY_AFTER_S });
}
