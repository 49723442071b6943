import { FRAME_SAMPLES } from '../dsp/tones.ts';

/**
 * Playout delay that nearly all of a party's packets meet, from a decaying histogram of their lateness. In ticks of 125
 * us.
 */

/** 5 ms. */
const BIN_TICKS = 40;
const BINS = 20;
/** 2 s of 20 ms packets weigh 63 %. */
const FORGETTING = 0.99;
/** Share of the packets that must arrive in time. */
const IN_TIME = 0.97;
/** Possible delay of this thread's timers. */
const MARGIN_TICKS = 40;
/** 80 ms. The frame's own 20 ms come on top. */
const MOST_DELAY_TICKS = 4 * FRAME_SAMPLES;
/** 40 ms, before any measurement. */
const FIRST_DELAY_TICKS = 2 * FRAME_SAMPLES;

export class PlayoutDelay {
  /** Whole frames. */
  ticks = FIRST_DELAY_TICKS;
  readonly #weights = new Float64Array(BINS);

  constructor() {
    this.#weights[(FIRST_DELAY_TICKS - MARGIN_TICKS) / BIN_TICKS - 1] = 1;
  }

  /** Adds a packet's lateness; negative if early. Allocates nothing. */
  note(lateTicks: number): void {
    const weights = this.#weights;
    for (let i = 0; i < BINS; i++) weights[i] = weights[i]! * FORGETTING;
    const bin = Math.max(0, Math.min(BINS - 1, Math.floor(lateTicks / BIN_TICKS)));
    weights[bin] = weights[bin]! + 1 - FORGETTING;
    let inTime = 0;
    let needed = 0;
    while (needed < BINS - 1 && inTime + weights[needed]! < IN_TIME) {
      inTime += weights[needed]!;
      needed += 1;
    }
    const needs = (needed + 1) * BIN_TICKS + MARGIN_TICKS;
    this.ticks = Math.min(MOST_DELAY_TICKS, Math.ceil(needs / FRAME_SAMPLES) * FRAME_SAMPLES);
  }
}
