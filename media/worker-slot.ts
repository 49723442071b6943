import type { CallTable } from './worker-messages.ts';
import { WorkerThread } from './worker-thread.ts';

/** A thread that dies young is started again ever later. */
const FIRST_RESTART_DELAY_MS = 50;
const LAST_RESTART_DELAY_MS = 10_000;
const LONG_LIFE_MS = 30_000;

interface SlotSession {
  /** The thread died. */
  lose: (detail: string) => void;
  close: () => Promise<void>;
}

interface WorkerSlotOptions<Event> {
  file: URL;
  /** Such as `media worker`. */
  name: string;
  onEvent: (sessionKey: number, event: Event) => void;
  /** Before its sessions are told. */
  onLost: (detail: string, sessions: number) => void;
}

/** A place for a worker in a pool, which outlives the threads that fill it. */
export class WorkerSlot<
  Calls extends CallTable<Calls>,
  Event,
  Session extends SlotSession,
  Notice extends object = never,
> {
  readonly #options: WorkerSlotOptions<Event>;
  readonly sessions = new Set<Session>();
  /** Requests to open that are on their way: they count as load. */
  opening = 0;
  #thread: WorkerThread<Calls, Event, Notice> | null = null;
  #startedAtMs = 0;
  #restarts = 0;
  #restartDelayMs = FIRST_RESTART_DELAY_MS / 2;
  #restartTimer: NodeJS.Timeout | null = null;
  #isClosing = false;

  constructor(options: WorkerSlotOptions<Event>) {
    this.#options = options;
    this.#start();
  }

  /** Null while the last one died and the next is not started yet. */
  get thread(): WorkerThread<Calls, Event, Notice> | null {
    return this.#thread;
  }

  get isAlive(): boolean {
    return this.#thread?.isAlive === true;
  }

  get restarts(): number {
    return this.#restarts;
  }

  get load(): number {
    return this.sessions.size + this.opening;
  }

  /** Closes sessions and thread, which is not started again. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#restartTimer !== null) clearTimeout(this.#restartTimer);
    await Promise.all([...this.sessions].map((session) => session.close().catch(() => {})));
    await this.#thread?.call('worker.drain', {}).catch(() => {});
    await this.#thread?.terminate();
    this.#thread = null;
  }

  #start(): void {
    this.#restartTimer = null;
    this.#startedAtMs = performance.now();
    const { file, name, onEvent } = this.#options;
    this.#thread = new WorkerThread({ file, name, onEvent, onLost: (detail) => this.#replace(detail) });
  }

  #replace(detail: string): void {
    this.#thread = null;
    const lost = [...this.sessions];
    this.#options.onLost(detail, lost.length);
    if (!this.#isClosing) {
      const isYoung = performance.now() - this.#startedAtMs < LONG_LIFE_MS;
      this.#restartDelayMs = isYoung
        ? Math.min(this.#restartDelayMs * 2, LAST_RESTART_DELAY_MS)
        : FIRST_RESTART_DELAY_MS;
      this.#restarts += 1;
      this.#restartTimer = setTimeout(() => this.#start(), this.#restartDelayMs);
    }
    for (const session of lost) session.lose(detail);
  }
}

/** The slot with a thread that has the least to do; null when no thread runs. */
export function leastLoaded<Slot extends { thread: unknown; load: number }>(slots: readonly Slot[]): Slot | null {
  let least: Slot | null = null;
  for (const slot of slots) {
    if (slot.thread !== null && (least === null || slot.load < least.load)) least = slot;
  }
  return least;
}
