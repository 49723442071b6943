import { meanPower } from '../dsp/level.ts';
import { SingleToneMeter, TONE_HOP_SAMPLES } from '../dsp/single-tone.ts';

/** Detects steady single tones: beeps of answering machines, fax and network tones. */

const HOP_MS = TONE_HOP_SAMPLES / 8;
/** Share of the power in the tone. Long tones are detected with more noise. */
const PURE = 0.94;
const FAIRLY_PURE = 0.8;
const LONG_HOPS = 8;
/** Three measurements are 64 ms; a tone of 80 ms has four. */
const FEWEST_HOPS = 3;
/** Largest frequency drift of a tone. A voice drifts more. */
const STILL_SHARE = 0.02;
/** The fax answering tone reverses its phase (ITU-T V.8 §7.2), which blurs a measurement or two. */
const MOST_BLURRED_HOPS = 3;
/** -44 dBov. */
const AUDIBLE_POWER = 32768 * 32768 * 10 ** -4.4;
/** Silence after a tone is 9 dB below it. */
const QUIET_SHARE = 1 / 8;
/** Loud hops allowed after a tone, caused by its own end. */
const MOST_LOUD_HOPS = 3;

export class ToneBursts {
  /** Length of the current tone; 0 without one. */
  soundingMs = 0;
  /** Frequency of the current or last tone. */
  frequencyHz = 0;
  /** Length of the last ended tone; 0 before the first and during another. */
  endedMs = 0;
  /** Silence since the last tone ended. */
  quietMs = 0;
  startedAtMs = 0;
  /** Whether the last 32 ms contain a single frequency, however short. */
  isPure = false;
  readonly #meter = new SingleToneMeter();
  #timeMs = 0;
  #hops = 0;
  #blurredHops = 0;
  #candidateHz = 0;
  #purity = 0;
  #power = 0;
  #endedPower = 0;
  #loudHops = 0;
  #previousPower = 0;

  /** Analyses the next `TONE_HOP_SAMPLES`. Allocates nothing. */
  add(samples: Int16Array): void {
    this.#timeMs += HOP_MS;
    this.#meter.add(samples);
    const hopPower = meanPower(samples);
    const power = Math.max(hopPower, this.#previousPower);
    this.#previousPower = hopPower;
    this.isPure = power > AUDIBLE_POWER && this.#meter.purity > FAIRLY_PURE;
    this.#listenAfter(hopPower);
    if (this.#hops > 0 && !this.#goesOn(power)) this.#end();
    if (this.#hops === 0 && this.isPure) this.#begin(power);
  }

  #begin(power: number): void {
    this.#hops = 1;
    this.#blurredHops = 0;
    this.#candidateHz = this.#meter.frequencyHz;
    this.#purity = this.#meter.purity;
    this.#power = power;
  }

  #goesOn(power: number): boolean {
    const { frequencyHz, purity } = this.#meter;
    if (!this.isPure || Math.abs(frequencyHz - this.#candidateHz) > STILL_SHARE * this.#candidateHz) {
      this.#blurredHops += 1;
      return power > this.#power / 4 && this.soundingMs > 0 && this.#blurredHops <= MOST_BLURRED_HOPS;
    }
    this.#hops += 1 + this.#blurredHops;
    this.#blurredHops = 0;
    this.#candidateHz += (frequencyHz - this.#candidateHz) / Math.min(this.#hops, 10);
    this.#purity += (purity - this.#purity) / this.#hops;
    this.#power = Math.max(this.#power, power);
    if (this.#hops >= FEWEST_HOPS && this.#purity > (this.#hops < LONG_HOPS ? PURE : FAIRLY_PURE)) this.#sound();
    return true;
  }

  #sound(): void {
    this.soundingMs = this.#hops * HOP_MS;
    this.startedAtMs = this.#timeMs - this.soundingMs;
    this.frequencyHz = this.#candidateHz;
    this.endedMs = 0;
  }

  #end(): void {
    this.#hops = 0;
    if (this.soundingMs === 0) return;
    this.endedMs = this.soundingMs;
    this.soundingMs = 0;
    this.quietMs = 0;
    this.#endedPower = this.#power;
    this.#loudHops = 0;
  }

  /** Rejects a tone that was part of a longer sound. */
  #listenAfter(hopPower: number): void {
    if (this.endedMs === 0) return;
    if (hopPower < this.#endedPower * QUIET_SHARE) this.quietMs += HOP_MS;
    else this.#loudHops += 1;
    if (this.#loudHops > MOST_LOUD_HOPS) this.endedMs = 0;
  }
}
