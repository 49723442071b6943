import { FRAME_MS } from '../dsp/tones.ts';

/**
 * Calls its clients once per 20 ms. Due times are multiples from the start, so late timers are caught up without drift.
 * A longer stall is skipped rather than sent as a burst. Runs only with clients.
 */

export const MOST_FRAMES_MADE_UP = 5;

interface PacerClock {
  /** Monotonic. */
  nowMs(): number;
  /** Calls back once. Returns a cancel function. */
  after(delayMs: number, callback: () => void): () => void;
}

export const systemPacerClock: PacerClock = {
  nowMs: () => performance.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

export class FramePacer {
  readonly #clock: PacerClock;
  readonly #clients = new Set<() => void>();
  #cancelTimer: (() => void) | null = null;
  #dueAtMs = 0;

  constructor(clock: PacerClock = systemPacerClock) {
    this.#clock = clock;
  }

  /** Starts calling `sendFrame`, at the latest after one frame. Returns a stop function. */
  add(sendFrame: () => void): () => void {
    this.#clients.add(sendFrame);
    if (this.#cancelTimer === null) {
      this.#dueAtMs = this.#clock.nowMs();
      this.#schedule();
    }
    return () => {
      this.#clients.delete(sendFrame);
      if (this.#clients.size > 0 || this.#cancelTimer === null) return;
      this.#cancelTimer();
      this.#cancelTimer = null;
    };
  }

  #schedule(): void {
    this.#cancelTimer = this.#clock.after(Math.max(0, this.#dueAtMs - this.#clock.nowMs()), () => this.#tick());
  }

  #tick(): void {
    const nowMs = this.#clock.nowMs();
    const mostOverdueMs = MOST_FRAMES_MADE_UP * FRAME_MS;
    if (nowMs - this.#dueAtMs > mostOverdueMs) {
      this.#dueAtMs += Math.floor((nowMs - this.#dueAtMs) / FRAME_MS) * FRAME_MS;
    }
    while (this.#dueAtMs <= nowMs) {
      for (const sendFrame of this.#clients) sendFrame();
      this.#dueAtMs += FRAME_MS;
    }
    if (this.#clients.size > 0) this.#schedule();
    else this.#cancelTimer = null;
  }
}
