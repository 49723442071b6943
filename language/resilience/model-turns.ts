import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import { LanguageEngineError } from '../engine.ts';

export interface ModelTurnsOptions {
  /** Answers at a time. */
  places: number;
  /** Who may wait for a place; default eight times the places. */
  waiting?: number;
  clock: Clock;
}

export interface TurnRequest {
  /** Of those who wait each has their turn, however often each asks. */
  onBehalfOf: string;
  patienceMs: number;
  signal: AbortSignal;
}

/**
 * So many answers of a model at a time, and so many who wait for their turn: in the order they came where they ask on
 * behalf of the same, else by turns. Where no more may wait, whoever has most of them waiting loses the last of them.
 * Whoever stops waiting leaves the queue at once. (cockatiel's bulkhead keeps them in it, and forgets those behind them.)
 */
export class ModelTurns {
  readonly #clock: Clock;
  readonly #places: number;
  readonly #mostWaiting: number;
  #taken = 0;
  /** By whom they ask for, whose turn is next first; none is empty. */
  readonly #queues = new Map<string, Set<Waiter>>();

  constructor({ places, waiting = 8 * places, clock }: ModelTurnsOptions) {
    this.#places = places;
    this.#mostWaiting = waiting;
    this.#clock = clock;
  }

  get isIdle(): boolean {
    return this.#taken === 0 && this.#queues.size === 0;
  }

  /**
   * Resolves with what gives the place back; idempotent.
   * @throws LanguageEngineError `rate_limited` when too many wait, or for too long; the signal's reason
   */
  async take({ onBehalfOf, patienceMs, signal }: TurnRequest): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken < this.#places) {
      this.#taken += 1;
      return this.#place();
    }
    this.#makeRoom(onBehalfOf);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { resolve, reject, isCalled: false };
    this.#queues.set(onBehalfOf, (this.#queues.get(onBehalfOf) ?? new Set()).add(waiter));
    try {
      if ((await within(promise, { ms: patienceMs, signal, clock: this.#clock })) === LATE) throw tooMany();
    } catch (error) {
      // Called and gone in the same moment: the place is the next one's.
      if (waiter.isCalled) this.#giveBack();
      else this.#remove(onBehalfOf, waiter);
      throw error;
    }
    return this.#place();
  }

  /** @throws LanguageEngineError `rate_limited` when it is theirs who have most waiting */
  #makeRoom(onBehalfOf: string): void {
    const waiting = [...this.#queues].map(([name, queue]) => ({ name, queue, count: queue.size }));
    if (waiting.reduce((sum, { count }) => sum + count, 0) < this.#mostWaiting) return;
    const most = waiting.reduce((a, b) => (b.count > a.count ? b : a));
    if ((this.#queues.get(onBehalfOf)?.size ?? 0) + 1 >= most.count) throw tooMany();
    const last = [...most.queue].at(-1)!;
    this.#remove(most.name, last);
    last.reject(tooMany());
  }

  #remove(onBehalfOf: string, waiter: Waiter): void {
    const queue = this.#queues.get(onBehalfOf);
    queue?.delete(waiter);
    if (queue?.size === 0) this.#queues.delete(onBehalfOf);
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
    const [next] = this.#queues;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    const [name, queue] = next;
    const waiter = queue.values().next().value!;
    queue.delete(waiter);
    // The others of the same come after all others.
    this.#queues.delete(name);
    if (queue.size > 0) this.#queues.set(name, queue);
    waiter.isCalled = true;
    waiter.resolve();
  }
}

interface Waiter {
  resolve: () => void;
  reject: (error: Error) => void;
  /** Whether it has a place. */
  isCalled: boolean;
}

const RETRY_AFTER_S = 2;

function tooMany(): LanguageEngineError {
  const message = 'the language model has as much to do as it can; others wait already';
  return new LanguageEngineError('rate_limited', message, { retryAfterS: RETRY_AFTER_S });
}
