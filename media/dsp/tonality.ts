import { RealFft } from './fft.ts';

/**
 * Measures the share of steady tones in a sound. Partials of a voice drift by several hertz between windows; those of
 * signalling tones and instruments do not. Works on windows of 512 samples at 16 kHz, each together with the previous
 * one.
 */

const WINDOW = 512;
const SPAN = 2 * WINDOW;
const BIN_HZ = 16_000 / SPAN;
/** Largest change of a steady partial in 32 ms. */
const STILL_HZ = 2;
/** 80 Hz to 4.7 kHz. */
const FIRST_BIN = 5;
const LAST_BIN = 300;
/** Weaker peaks are noise. */
const PEAK_SHARE = 0.003;
const MOST_PEAKS = 150;

/** DTMF (ITU-T Q.23, Q.24): one tone of either group, each exact to 1.8 %, with almost all the power. */
const DTMF_LOW_HZ = [697, 770, 852, 941];
const DTMF_HIGH_HZ = [1209, 1336, 1477, 1633];
const DTMF_TOLERANCE = 0.018;
const DTMF_SHARE = 0.9;
const DTMF_WEAKER_SHARE = 0.05;

export class TonalityMeter {
  readonly #fft = new RealFft(SPAN);
  readonly #samples = new Float32Array(SPAN);
  readonly #windowed = new Float32Array(SPAN);
  readonly #powers = new Float32Array(WINDOW + 1);
  /** Peak frequencies of this window and the last, ascending. */
  #peaksHz = new Float64Array(MOST_PEAKS);
  #lastPeaksHz = new Float64Array(MOST_PEAKS);
  #lastPeaks = 0;
  #isDtmf = false;

  /**
   * Returns the share of the window's power, 0 to 1, in tones that continue from the previous window. Allocates
   * nothing.
   */
  add(window: Float32Array): number {
    this.#samples.copyWithin(0, WINDOW);
    this.#samples.set(window, WINDOW);
    for (let i = 0; i < SPAN; i++) this.#windowed[i] = this.#samples[i]! * HANN[i]!;
    this.#fft.powers(this.#windowed, this.#powers);
    const powers = this.#powers;
    let total = 0;
    for (let bin = FIRST_BIN - 1; bin < WINDOW; bin++) total += powers[bin]!;
    let peaks = 0;
    let last = 0;
    let still = 0;
    let lowShare = 0;
    let highShare = 0;
    for (let bin = FIRST_BIN; bin < LAST_BIN; bin++) {
      const power = powers[bin]!;
      if (power <= total * PEAK_SHARE || power <= powers[bin - 1]! || power < powers[bin + 1]!) continue;
      const peakHz = this.#peakHz(bin);
      this.#peaksHz[peaks++] = peakHz;
      const share = this.#shareAround(bin, total);
      if (isOneOf(DTMF_LOW_HZ, peakHz)) lowShare = Math.max(lowShare, share);
      if (isOneOf(DTMF_HIGH_HZ, peakHz)) highShare = Math.max(highShare, share);
      while (last < this.#lastPeaks && this.#lastPeaksHz[last]! <= peakHz - STILL_HZ) last++;
      if (last < this.#lastPeaks && this.#lastPeaksHz[last]! < peakHz + STILL_HZ) still += share;
    }
    this.#lastPeaks = peaks;
    [this.#peaksHz, this.#lastPeaksHz] = [this.#lastPeaksHz, this.#peaksHz];
    this.#isDtmf = lowShare + highShare > DTMF_SHARE && Math.min(lowShare, highShare) > DTMF_WEAKER_SHARE;
    return Math.min(1, still);
  }

  /** Whether the last window is DTMF, which is too short to be recognised by steadiness. */
  get isDtmf(): boolean {
    return this.#isDtmf;
  }

  #shareAround(bin: number, total: number): number {
    let power = 0;
    for (let near = bin - 2; near <= bin + 2; near++) power += this.#powers[near]!;
    return power / total;
  }

  /** Parabolic interpolation of the logarithms between bins. */
  #peakHz(bin: number): number {
    const below = Math.log(this.#powers[bin - 1]! + Number.MIN_VALUE);
    const top = Math.log(this.#powers[bin]!);
    const above = Math.log(this.#powers[bin + 1]! + Number.MIN_VALUE);
    return (bin + (below - above) / (2 * (below - 2 * top + above))) * BIN_HZ;
  }
}

function isOneOf(frequenciesHz: readonly number[], hz: number): boolean {
  for (let i = 0; i < frequenciesHz.length; i++) {
    if (Math.abs(hz - frequenciesHz[i]!) < frequenciesHz[i]! * DTMF_TOLERANCE) return true;
  }
  return false;
}

const HANN = Float32Array.from({ length: SPAN }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / SPAN));
