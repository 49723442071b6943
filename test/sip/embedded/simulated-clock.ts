import type { Clock } from '../../../sip/embedded/clock.ts';

export class SimulatedClock implements Clock {
  nowMs = 0;
  #timers: { dueMs: number; run: () => void }[] = [];

  get pendingCount(): number {
    return this.#timers.length;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { dueMs: this.nowMs + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Runs the timers that are due in order, including newly set ones. */
  advance(durationMs: number): void {
    const endMs = this.nowMs + durationMs;
    for (;;) {
      const next = this.#timers.filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.nowMs = next.dueMs;
      next.run();
    }
    this.nowMs = endMs;
  }
}
