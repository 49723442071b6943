import { RealFft } from './fft.ts';

/**
 * Measures the strongest frequency at 8 kHz and its share of the power, over 32 ms, every 16 ms. Beeps and fax tones
 * are nearly pure; voices rarely are.
 */

export const TONE_HOP_SAMPLES = 128;
const SPAN = 2 * TONE_HOP_SAMPLES;
const BIN_HZ = 8000 / SPAN;
/** Hum and the pitch of voices are below 300 Hz. */
const FIRST_BIN = Math.ceil(300 / BIN_HZ);
const LAST_BIN = Math.floor(2700 / BIN_HZ);
/** Half the main lobe of the window, in bins. */
const LOBE_BINS = 2;

export class SingleToneMeter {
  /** The strongest frequency, 300 to 2700 Hz; 0 in silence. */
  frequencyHz = 0;
  /** Its share of the power, 0 to 1. */
  purity = 0;
  readonly #fft = new RealFft(SPAN);
  readonly #samples = new Float32Array(SPAN);
  readonly #windowed = new Float32Array(SPAN);
  readonly #powers = new Float32Array(SPAN / 2 + 1);

  /** Adds the next `TONE_HOP_SAMPLES` and measures them with the previous ones. Allocates nothing. */
  add(samples: Int16Array): void {
    this.#samples.copyWithin(0, TONE_HOP_SAMPLES);
    this.#samples.set(samples, TONE_HOP_SAMPLES);
    for (let i = 0; i < SPAN; i++) this.#windowed[i] = this.#samples[i]! * HANN[i]!;
    this.#fft.powers(this.#windowed, this.#powers);
    const powers = this.#powers;
    let total = 0;
    let top = FIRST_BIN;
    for (let bin = 1; bin <= SPAN / 2; bin++) {
      total += powers[bin]!;
      if (bin > FIRST_BIN && bin <= LAST_BIN && powers[bin]! > powers[top]!) top = bin;
    }
    this.frequencyHz = total > 0 ? this.#peakHz(top) : 0;
    this.purity = total > 0 ? this.#lobe(top) / total : 0;
  }

  #lobe(top: number): number {
    let power = 0;
    for (let bin = top - LOBE_BINS; bin <= top + LOBE_BINS; bin++) power += this.#powers[bin]!;
    return power;
  }

  /** Parabolic interpolation of the logarithms between bins. */
  #peakHz(bin: number): number {
    const below = Math.log(this.#powers[bin - 1]! + Number.MIN_VALUE);
    const top = Math.log(this.#powers[bin]! + Number.MIN_VALUE);
    const above = Math.log(this.#powers[bin + 1]! + Number.MIN_VALUE);
    const curvature = below - 2 * top + above;
    return (bin + (curvature < 0 ? (below - above) / (2 * curvature) : 0)) * BIN_HZ;
  }
}

const HANN = Float32Array.from({ length: SPAN }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / SPAN));
