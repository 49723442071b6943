import { powerToDbov } from '../dsp/level.ts';
import { NoiseFloor } from '../dsp/noise-floor.ts';
import type { PartyLevel } from '../media-plane.ts';

/** Speech exceeds the background by this power ratio: 9 dB. */
const SPEECH_ABOVE_FLOOR = 8;
/** -50 dBov; line noise and residual echo are quieter. */
const QUIETEST_SPEECH_POWER = 32768 * 32768 * 1e-5;
/** 100 ms of 125 us ticks. A click is shorter. */
const SHORTEST_SPEECH_TICKS = 800;

/** Measures a party's level between two readings, and whether it speaks. Allocates nothing per packet. */
export class LevelMeter {
  readonly #floor = new NoiseFloor();
  #energy = 0;
  #ticks = 0;
  #loudTicks = 0;

  /** Adds the mean power of a packet and its length in ticks of 125 us. */
  addFrame(power: number, ticks: number): void {
    this.#floor.rises(power);
    this.#energy += power * ticks;
    this.#ticks += ticks;
    if (power > QUIETEST_SPEECH_POWER && power > SPEECH_ABOVE_FLOOR * this.#floor.power) this.#loudTicks += ticks;
  }

  /** The level since the last reading; silence without packets. */
  read(): PartyLevel {
    const levelDbov = Math.round(powerToDbov(this.#ticks === 0 ? 0 : this.#energy / this.#ticks));
    const isSpeaking = this.#loudTicks >= SHORTEST_SPEECH_TICKS;
    this.#energy = 0;
    this.#ticks = 0;
    this.#loudTicks = 0;
    return { levelDbov, isSpeaking };
  }
}
