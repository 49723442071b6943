import { RECOGNITION_RATE_HZ } from '../../machines/utterances.ts';
import { Resampler } from '../dsp/resample.ts';
import { WINDOW_SAMPLES } from './windows.ts';

/** Takes whole windows: as they were heard, and as they are to be recognised. Both are reused for the next. */
export type WindowSink = (heard: Float32Array, improved: Int16Array) => void;

/** Samples of one channel at any rate to windows at 16 kHz, without direct current. */
export class SpeechFront {
  readonly #sink: WindowSink;
  #resampler: Resampler | null;
  #isUpsampled = false;
  #converted = new Float32Array(0);
  readonly #heard = new Float32Array(WINDOW_SAMPLES);
  readonly #improved = new Int16Array(WINDOW_SAMPLES);
  #filled = 0;
  #samples = 0;
  #directIn = 0;
  #directOut = 0;
  #noise = 1;

  constructor(sampleRateHz: number, sink: WindowSink) {
    this.#sink = sink;
    this.#resampler = null;
    this.#setRate(sampleRateHz);
  }

  /** Samples at 16 kHz so far. */
  get samples(): number {
    return this.#samples;
  }

  /** Takes the first `count` samples of a block, which may be as long as it likes. */
  push(block: Float32Array, count: number): void {
    if (this.#resampler === null) {
      this.#take(block, count);
      return;
    }
    this.#makeRoom(count);
    this.#take(this.#converted, this.#resampler.process(block, count, this.#converted));
  }

  /** What comes from now on has another rate; time goes on. */
  configure(sampleRateHz: number): void {
    this.#drain();
    this.#setRate(sampleRateHz);
  }

  /** Fills the last window with silence. Nothing can follow. */
  finish(): void {
    this.#drain();
    if (this.#filled === 0) return;
    this.#heard.fill(0, this.#filled);
    this.#improved.fill(0, this.#filled);
    this.#filled = 0;
    this.#sink(this.#heard, this.#improved);
  }

  #setRate(sampleRateHz: number): void {
    const isSame = sampleRateHz === RECOGNITION_RATE_HZ;
    this.#resampler = isSame ? null : new Resampler(sampleRateHz, RECOGNITION_RATE_HZ);
    this.#isUpsampled = sampleRateHz < RECOGNITION_RATE_HZ;
  }

  #drain(): void {
    if (this.#resampler === null) return;
    this.#makeRoom(0);
    this.#take(this.#converted, this.#resampler.flush(this.#converted));
  }

  #makeRoom(count: number): void {
    const bound = this.#resampler?.outputBound(count) ?? 0;
    if (bound > this.#converted.length) this.#converted = new Float32Array(bound);
  }

  #take(block: Float32Array, count: number): void {
    for (let i = 0; i < count; i++) {
      // A high-pass at 13 Hz: an offset of a cheap converter is no sound.
      const sample = block[i]!;
      const alternating = sample - this.#directIn + DIRECT_DECAY * this.#directOut;
      this.#directIn = sample;
      this.#directOut = alternating;
      this.#heard[this.#filled] = alternating;
      this.#improved[this.#filled] = this.#toInteger(alternating);
      this.#filled += 1;
      this.#samples += 1;
      if (this.#filled < WINDOW_SAMPLES) continue;
      this.#filled = 0;
      this.#sink(this.#heard, this.#improved);
    }
  }

  #toInteger(sample: number): number {
    const dithered = this.#isUpsampled ? sample + this.#dither() : sample;
    return Math.max(-32_768, Math.min(32_767, Math.round(dithered)));
  }

  /** The empty upper half of what was upsampled has logarithms that recognisers were not trained on. */
  #dither(): number {
    // Xorshift (Marsaglia 2003): the same for every stream, so that the same audio gives the same text.
    this.#noise ^= this.#noise << 13;
    this.#noise ^= this.#noise >>> 17;
    this.#noise ^= this.#noise << 5;
    return (this.#noise / 2 ** 31) * DITHER_STEPS;
  }
}

const DIRECT_DECAY = 0.995;
const DITHER_STEPS = 3;
