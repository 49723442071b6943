import { FRAME_SAMPLES } from '../dsp/tones.ts';

/**
 * How long a party's packets have to wait so that all but a few are there in time: a histogram of how late they come, which
 * forgets. In ticks of 125 us.
 */

/** 5 ms. */
const BIN_TICKS = 40;
const BINS = 20;
/** 2 s of 20 ms packets weigh 63 %. */
const FORGETTING = 0.99;
/** The part of the packets that must not come too late. */
const IN_TIME = 0.97;
/** What a timer of this thread may be late. */
const MARGIN_TICKS = 40;
/** 80 ms. A frame that is taken then has waited for its own 20 ms too. */
const MOST_DELAY_TICKS = 4 * FRAME_SAMPLES;
/** 40 ms, before anything is known. */
const FIRST_DELAY_TICKS = 2 * FRAME_SAMPLES;

export class PlayoutDelay {
  /** Whole frames. */
  ticks = FIRST_DELAY_TICKS;
  readonly #weights = new Float64Array(BINS);

  constructor() {
    this.#weights[(FIRST_DELAY_TICKS - MARGIN_TICKS) / BIN_TICKS - 1] = 1;
  }

  /** Notes how much later a packet came than its time; negative for earlier. Allocates nothing. */
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
