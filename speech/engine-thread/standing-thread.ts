import { setTimeout as sleep } from 'node:timers/promises';
import { EngineThread, type EngineThreadOptions } from './engine-thread.ts';
import type { CallTable } from './protocol.ts';

export interface StandingThreadOptions<Ready, Notice> extends EngineThreadOptions<Notice> {
  /** Of each one that is started. */
  onReady: (ready: Ready) => void;
  /** One died; what was asked of it fails, and another is on its way. */
  onLost: (detail: string) => void;
  /** What those are told who want it once it is closed. */
  toClosed: () => Error;
}

/** One that dies young is started again ever later. */
const FIRST_RESTART_DELAY_MS = 50;
const LAST_RESTART_DELAY_MS = 10_000;
const LONG_LIFE_MS = 30_000;

/** A thread with engines, and after it died a new one in its place, until it is closed. */
export class StandingThread<Calls extends CallTable<Calls>, Ready, Notice> {
  readonly #options: StandingThreadOptions<Ready, Notice>;
  readonly #closed = new AbortController();
  /** The thread that runs, or the one that is to take the place of one that died. */
  #running: Promise<EngineThread<Calls, Ready, Notice>>;
  #thread: EngineThread<Calls, Ready, Notice> | null = null;
  /** Null while it starts. */
  #readyAtMs: number | null = null;
  #restartDelayMs = FIRST_RESTART_DELAY_MS / 2;
  #closing: Promise<void> | null = null;

  constructor(options: StandingThreadOptions<Ready, Notice>) {
    this.#options = options;
    this.#running = this.#start();
  }

  /** Once it is ready. @throws what `toLoss` or `toClosed` makes */
  async get(): Promise<EngineThread<Calls, Ready, Notice>> {
    if (this.#closing !== null) throw this.#options.toClosed();
    try {
      return await this.#running;
    } catch (error) {
      // It may have been closed meanwhile.
      throw this.#closing === null ? error : this.#options.toClosed();
    }
  }

  /** Whether it is the one that runs now. */
  isCurrent(thread: EngineThread<Calls, Ready, Notice>): boolean {
    return thread === this.#thread;
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

  async #start(): Promise<EngineThread<Calls, Ready, Notice>> {
    const thread = new EngineThread<Calls, Ready, Notice>(this.#options);
    this.#thread = thread;
    this.#readyAtMs = null;
    void thread.ended.then((detail) => this.#replace(detail));
    const ready = await thread.ready;
    this.#readyAtMs = performance.now();
    this.#options.onReady(ready);
    return thread;
  }

  #replace(detail: string): void {
    if (this.#closing !== null) return;
    // However long it took to start.
    const isYoung = this.#readyAtMs === null || performance.now() - this.#readyAtMs < LONG_LIFE_MS;
    this.#restartDelayMs = isYoung ? Math.min(this.#restartDelayMs * 2, LAST_RESTART_DELAY_MS) : FIRST_RESTART_DELAY_MS;
    this.#thread = null;
    this.#running = sleep(this.#restartDelayMs, null, { signal: this.#closed.signal }).then(() => this.#start());
    // Whoever waits for it is told; that nobody does is no failure.
    this.#running.catch(() => {});
    this.#options.onLost(detail);
  }
}
