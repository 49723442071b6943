import { timestampDelta } from './receiver-statistics.ts';

/** Converts RTP timestamps of any clock to ticks of 125 us. Both wrap at 32 bits, but at different times. */
export class TickClock {
  #perTick = 1;
  #timestamp = 0;
  #ticks = 0;

  start(clockHz: number, timestamp: number): void {
    this.#perTick = clockHz / 8000;
    this.#timestamp = timestamp;
    this.#ticks = this.#perTick === 1 ? timestamp : Math.floor(timestamp / this.#perTick);
  }

  ticksOf(timestamp: number): number {
    if (this.#perTick === 1) return timestamp;
    const ticks = Math.round(timestampDelta(timestamp, this.#timestamp) / this.#perTick);
    this.#timestamp = (this.#timestamp + ticks * this.#perTick) >>> 0;
    this.#ticks = (this.#ticks + ticks) >>> 0;
    return this.#ticks;
  }
}
