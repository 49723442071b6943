import { setTimeout as sleep } from 'node:timers/promises';
import { BackOff } from './back-off.ts';
import { SupervisedThread, THREAD_CLOSED, ThreadError, type ThreadOptions } from './supervised-thread.ts';
import type { ThreadProtocol } from './thread-protocol.ts';

export interface StandingThreadOptions<P extends ThreadProtocol> extends ThreadOptions<P> {
  onReady?: (ready: P['ready']) => void;
  /** Called when the thread died. Its calls have failed, and a replacement starts after a delay. */
  onLost: (detail: string) => void;
}

/** Short-lived threads are restarted after growing delays. */
const RESTART_DELAY = { firstMs: 50, longestMs: 10_000 };
const LONG_LIFE_MS = 30_000;

/** A thread that is replaced when it dies, until it is closed. */
export class StandingThread<P extends ThreadProtocol> {
  readonly #options: StandingThreadOptions<P>;
  readonly #closed = new AbortController();
  readonly #backOff = new BackOff(RESTART_DELAY);
  #thread: SupervisedThread<P> | null = null;
  /** The current or next thread, once it is ready. */
  #running: Promise<SupervisedThread<P>>;
  /** Null while it starts. */
  #readyAtMs: number | null = null;
  #restarts = 0;
  #closing: Promise<void> | null = null;

  constructor(options: StandingThreadOptions<P>) {
    this.#options = options;
    this.#running = this.#start();
    this.#running.catch(() => {});
  }

  /** The running or starting thread. Null before a restart and after the close. */
  get current(): SupervisedThread<P> | null {
    return this.#thread?.isAlive === true ? this.#thread : null;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** The thread, once it is ready. @throws what `toError` returns for a loss or the close */
  async get(): Promise<SupervisedThread<P>> {
    if (this.#closing !== null) throw this.#closedError();
    try {
      return await this.#running;
    } catch (error) {
      // It may have been closed meanwhile.
      throw this.#closing === null ? error : this.#closedError();
    }
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#closed.abort();
    await this.#thread?.close();
  }

  async #start(): Promise<SupervisedThread<P>> {
    const thread = new SupervisedThread<P>(this.#options);
    this.#thread = thread;
    this.#readyAtMs = null;
    void thread.ended.then(({ message }) => this.#replace(message));
    const ready = await thread.ready;
    this.#readyAtMs = performance.now();
    this.#options.onReady?.(ready);
    return thread;
  }

  #replace(detail: string): void {
    if (this.#closing !== null) return;
    const isYoung = this.#readyAtMs === null || performance.now() - this.#readyAtMs < LONG_LIFE_MS;
    if (!isYoung) this.#backOff.reset();
    this.#restarts += 1;
    this.#running = sleep(this.#backOff.next(), null, { signal: this.#closed.signal }).then(() => this.#start());
    this.#running.catch(() => {});
    this.#options.onLost(detail);
  }

  #closedError(): Error {
    const error = new ThreadError(THREAD_CLOSED, `${this.#options.name} was closed`);
    return this.#options.toError?.(error) ?? error;
  }
}
