import type { Clock } from '../../runtime/clock.ts';
import { Gate, GateFullError } from '../../runtime/gate.ts';
import { LanguageEngineError } from '../engine.ts';

export interface ModelTurnsOptions {
  /** Concurrent answers. */
  places: number;
  clock: Clock;
}

export interface TurnRequest {
  /** Workspaces take turns, however many requests each has. */
  onBehalfOf: string;
  patienceMs: number;
  signal: AbortSignal;
}

/** Limits a model's concurrent answers, its queue length and the waiting time. */
export class ModelTurns {
  readonly #gate: Gate;
  readonly #clock: Clock;

  constructor({ places, clock }: ModelTurnsOptions) {
    this.#gate = new Gate({ inAll: places, waiting: WAITING_PER_PLACE * places });
    this.#clock = clock;
  }

  get isIdle(): boolean {
    return this.#gate.counts.lanes === 0;
  }

  /**
   * Resolves with a function that releases the slot; calling it again does nothing.
   * @throws LanguageEngineError `rate_limited` if the queue is full or the wait is too long; the signal's reason
   */
  async take({ onBehalfOf: lane, patienceMs, signal }: TurnRequest): Promise<() => void> {
    const late = new AbortController();
    const timer = this.#clock.setTimeout(() => late.abort(tooMany()), patienceMs);
    try {
      return await this.#gate.enter({ lane, signal: AbortSignal.any([signal, late.signal]) });
    } catch (error) {
      throw error instanceof GateFullError ? tooMany() : error;
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }
}

const WAITING_PER_PLACE = 8;
const RETRY_AFTER_S = 2;

function tooMany(): LanguageEngineError {
  const message = 'the language model has as much to do as it can; others wait already';
  return new LanguageEngineError('rate_limited', message, { retryAfterS: RETRY_AFTER_S });
}
