import type { Clock } from '../../runtime/clock.ts';
import { Gate, GateFullError } from '../../runtime/gate.ts';
import { LanguageEngineError } from '../engine.ts';

export interface ModelTurnsOptions {
  /** Answers at a time. */
  places: number;
  clock: Clock;
}

export interface TurnRequest {
  /** Workspaces are served in turns, however often each asks. */
  onBehalfOf: string;
  patienceMs: number;
  signal: AbortSignal;
}

/** Limits the answers of one model at a time, and how many requests wait for it and how long. */
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
   * Resolves with a function that gives the place back; calling it again does nothing.
   * @throws LanguageEngineError `rate_limited` when too many wait, or for too long; the signal's reason
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
