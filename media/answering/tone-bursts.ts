import { meanPower } from '../dsp/level.ts';
import { SingleToneMeter, TONE_HOP_SAMPLES } from '../dsp/single-tone.ts';

/**
 * Finds single tones that stand still, with their frequency and length: the beep of an answering machine, the tones of
 * fax machines and of the network.
 */

const HOP_MS = TONE_HOP_SAMPLES / 8;
/** Share of the power in the tone. A long tone is found through noise as well. */
const PURE = 0.94;
const FAIRLY_PURE = 0.8;
const LONG_HOPS = 8;
/** Three measurements are 64 ms, and a tone of 80 ms has four. */
const FEWEST_HOPS = 3;
/** How far a tone wanders, and a voice more. */
const STILL_SHARE = 0.02;
/** The fax answering tone turns its phase (ITU-T V.8 §7.2), which blurs a measurement or two. */
const MOST_BLURRED_HOPS = 3;
/** -44 dBov. */
const AUDIBLE_POWER = 32768 * 32768 * 10 ** -4.4;
/** It is quiet after a tone when all is 9 dB below it. */
const QUIET_SHARE = 1 / 8;
/** What may still sound after a tone: its own end. */
const MOST_LOUD_HOPS = 3;

export class ToneBursts {
  /** Of the tone that sounds, 0 while none does. */
  soundingMs = 0;
  /** Of the tone that sounds, or of the last one. */
  frequencyHz = 0;
  /** Of the last tone that has ended, 0 before the first and while another sounds. */
  endedMs = 0;
  /** Silence since it ended. */
  quietMs = 0;
  /** When the tone that sounds, or the last one, began. */
  startedAtMs = 0;
  /** Whether the last 32 ms hold one frequency, however short it has sounded. */
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

  /** Takes the next `TONE_HOP_SAMPLES`. Allocates nothing. */
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

  /** A tone that something else follows at once was part of that. */
  #listenAfter(hopPower: number): void {
    if (this.endedMs === 0) return;
    if (hopPower < this.#endedPower * QUIET_SHARE) this.quietMs += HOP_MS;
    else this.#loudHops += 1;
    if (this.#loudHops > MOST_LOUD_HOPS) this.endedMs = 0;
  }
}
