import { RealFft } from './fft.ts';

/**
 * How much of a sound is tones that stand still. The pitch of a voice never rests: its partials wander by more than a
 * few hertz from one window to the next, those of signalling tones and of the notes of instruments do not. Measured on
 * windows of 512 samples at 16 kHz, each seen together with the one before it.
 */

const WINDOW = 512;
const SPAN = 2 * WINDOW;
const BIN_HZ = 16_000 / SPAN;
/** A partial that moves less than this in 32 ms stands still. */
const STILL_HZ = 2;
/** 80 Hz to 4.7 kHz. */
const FIRST_BIN = 5;
const LAST_BIN = 300;
/** Weaker peaks are noise. */
const PEAK_SHARE = 0.003;
const MOST_PEAKS = 150;

export class TonalityMeter {
  readonly #fft = new RealFft(SPAN);
  readonly #samples = new Float32Array(SPAN);
  readonly #windowed = new Float32Array(SPAN);
  readonly #powers = new Float32Array(WINDOW + 1);
  /** Frequencies of the peaks of this window and of the last, rising. */
  #peaksHz = new Float64Array(MOST_PEAKS);
  #lastPeaksHz = new Float64Array(MOST_PEAKS);
  #lastPeaks = 0;

  /** Share of the window's power, 0 to 1, that is in tones which were there in the window before. Allocates nothing. */
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
    for (let bin = FIRST_BIN; bin < LAST_BIN; bin++) {
      const power = powers[bin]!;
      if (power <= total * PEAK_SHARE || power <= powers[bin - 1]! || power < powers[bin + 1]!) continue;
      const peakHz = this.#peakHz(bin);
      this.#peaksHz[peaks++] = peakHz;
      while (last < this.#lastPeaks && this.#lastPeaksHz[last]! <= peakHz - STILL_HZ) last++;
      if (last < this.#lastPeaks && this.#lastPeaksHz[last]! < peakHz + STILL_HZ) {
        for (let near = bin - 2; near <= bin + 2; near++) still += powers[near]!;
      }
    }
    this.#lastPeaks = peaks;
    [this.#peaksHz, this.#lastPeaksHz] = [this.#lastPeaksHz, this.#peaksHz];
    return total === 0 ? 0 : Math.min(1, still / total);
  }

  /** Between bins: the top of the parabola through the logarithms. */
  #peakHz(bin: number): number {
    const below = Math.log(this.#powers[bin - 1]! + Number.MIN_VALUE);
    const top = Math.log(this.#powers[bin]!);
    const above = Math.log(this.#powers[bin + 1]! + Number.MIN_VALUE);
    return (bin + (below - above) / (2 * (below - 2 * top + above))) * BIN_HZ;
  }
}

const HANN = Float32Array.from({ length: SPAN }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / SPAN));
