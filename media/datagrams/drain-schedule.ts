/**
 * Decides when a media worker drains its sockets. At a low packet rate, the kernel wakes it for each packet. At a high
 * rate, it drains every millisecond or two, so that one system call serves many packets. Each turn is bounded, so that
 * timers and messages run.
 */

/** Packets per millisecond that switch from waking to the timer: ten calls. Half of that switches back. */
const BUSY_PER_MS = 1;
/** Packets per millisecond that double the interval: two hundred calls. */
const VERY_BUSY_PER_MS = 20;
const SHORT_INTERVAL_MS = 1;
const LONG_INTERVAL_MS = 2;
const MEASURE_MS = 100;

export const MOST_PACKETS_PER_TURN = 2000;
export const MOST_MS_PER_TURN = 5;

interface DrainScheduleOptions {
  nowMs: () => number;
  /** Handles received packets, up to a bound, and returns their number. */
  drain: () => number;
  hasMore: () => boolean;
  /** Makes the kernel call `onWoken` for packets that arrive from now on. */
  startWaking: (onWoken: () => void) => void;
  stopWaking: () => void;
}

export class DrainSchedule {
  readonly #options: DrainScheduleOptions;
  readonly #turn = (): void => this.#takeTurn();
  readonly #woken = (): void => this.soon();
  #state: 'stopped' | 'sleeping' | 'by the clock' = 'stopped';
  #immediate: NodeJS.Immediate | null = null;
  #timer: NodeJS.Timeout | null = null;
  #timerMs = 0;
  #packets = 0;
  #measuredFromMs = 0;
  #turns = 0;

  constructor(options: DrainScheduleOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#state !== 'stopped') return;
    this.#measuredFromMs = this.#options.nowMs();
    this.#packets = 0;
    this.#sleep();
  }

  stop(): void {
    if (this.#state === 'sleeping') this.#options.stopWaking();
    this.#state = 'stopped';
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#timer = null;
    this.#immediate = null;
  }

  dump(): unknown {
    return {
      state: this.#state,
      intervalMs: this.#state === 'by the clock' ? this.#timerMs : null,
      turns: this.#turns,
    };
  }

  /** Takes a turn before the event loop waits again. */
  soon(): void {
    if (this.#state !== 'stopped') this.#immediate ??= setImmediate(this.#turn);
  }

  #takeTurn(): void {
    this.#immediate = null;
    this.#turns += 1;
    this.#packets += this.#options.drain();
    // A receiver may have closed the last socket.
    if (this.#state === 'stopped') return;
    this.#measure();
    if (this.#options.hasMore()) this.soon();
    else if (this.#state === 'by the clock') this.#timer?.refresh();
  }

  #measure(): void {
    const nowMs = this.#options.nowMs();
    const elapsedMs = nowMs - this.#measuredFromMs;
    if (elapsedMs < MEASURE_MS && this.#packets < BUSY_PER_MS * MEASURE_MS) return;
    const perMs = this.#packets / Math.max(1, elapsedMs);
    if (elapsedMs >= MEASURE_MS) {
      this.#packets = 0;
      this.#measuredFromMs = nowMs;
    }
    if (this.#state === 'sleeping') {
      if (perMs >= BUSY_PER_MS) this.#goByTheClock(perMs);
    } else if (elapsedMs >= MEASURE_MS) {
      if (perMs < BUSY_PER_MS / 2) this.#sleep();
      else this.#goByTheClock(perMs);
    }
  }

  #sleep(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#state = 'sleeping';
    this.#options.startWaking(this.#woken);
    // Packets may have arrived before waking was on.
    this.soon();
  }

  #goByTheClock(perMs: number): void {
    if (this.#state === 'sleeping') this.#options.stopWaking();
    this.#state = 'by the clock';
    const intervalMs = perMs >= VERY_BUSY_PER_MS ? LONG_INTERVAL_MS : SHORT_INTERVAL_MS;
    if (this.#timer !== null && this.#timerMs === intervalMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerMs = intervalMs;
    this.#timer = setTimeout(this.#turn, intervalMs);
  }
}
