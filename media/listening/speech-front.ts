import { RECOGNITION_RATE_HZ } from '../../machines/utterances.ts';
import { Resampler } from '../dsp/resample.ts';
import type { AudioEnhancement } from '../listening-plane.ts';
import type { NoiseSuppressor, NoiseSuppressors } from './noise-suppressor.ts';
import { WINDOW_SAMPLES } from './windows.ts';

/** Receives each window, unchanged and enhanced for recognition. Both arrays are reused. */
export type WindowSink = (original: Float32Array, improved: Int16Array) => void;

interface SpeechFrontOptions {
  sampleRateHz: number;
  enhancement: AudioEnhancement;
  suppressors: NoiseSuppressors;
  sink: WindowSink;
}

/** Converts samples of one channel to windows at 16 kHz. Removes direct current and, if enabled, noise. */
export class SpeechFront {
  readonly #sink: WindowSink;
  readonly #suppressors: NoiseSuppressors;
  #resampler: Resampler | null = null;
  #suppressor: NoiseSuppressor | null = null;
  #enhancement: AudioEnhancement = 'off';
  /** Strength of noise suppression, 0 to 1. */
  #strength = 0;
  #isUpsampled = false;
  #converted = new Float32Array(0);
  readonly #original = new Float32Array(WINDOW_SAMPLES);
  readonly #improved = new Int16Array(WINDOW_SAMPLES);
  #filled = 0;
  #samples = 0;
  #directIn = 0;
  #directOut = 0;
  #noise = 1;

  constructor(options: SpeechFrontOptions) {
    this.#sink = options.sink;
    this.#suppressors = options.suppressors;
    this.setRate(options.sampleRateHz);
    this.setEnhancement(options.enhancement);
  }

  /** Input samples so far, at 16 kHz. */
  get samples(): number {
    return this.#samples;
  }

  /** Takes the first `count` samples of a block, and may modify them. */
  push(block: Float32Array, count: number): void {
    if (this.#resampler === null) {
      this.#take(block, count);
      return;
    }
    this.#makeRoom(count);
    this.#take(this.#converted, this.#resampler.process(block, count, this.#converted));
  }

  /** Sets the rate of later input; time continues. */
  setRate(sampleRateHz: number): void {
    this.#drainResampler();
    const isSame = sampleRateHz === RECOGNITION_RATE_HZ;
    this.#resampler = isSame ? null : new Resampler(sampleRateHz, RECOGNITION_RATE_HZ);
    this.#isUpsampled = sampleRateHz < RECOGNITION_RATE_HZ;
  }

  setEnhancement(enhancement: AudioEnhancement): void {
    this.#enhancement = enhancement;
    if (enhancement === 'light') this.#strength = LIGHT_STRENGTH;
    if (enhancement === 'off') this.#drainSuppressor();
    else this.#suppressor ??= this.#suppressors.open();
  }

  get isAdaptive(): boolean {
    return this.#enhancement === 'adaptive';
  }

  adaptTo(snrDb: number): void {
    const wanted = (CLEAN_SNR_DB - snrDb) / (CLEAN_SNR_DB - NOISY_SNR_DB);
    const target = Math.max(0, Math.min(1, wanted));
    this.#strength += Math.max(-MOST_CHANGE, Math.min(MOST_CHANGE, target - this.#strength));
  }

  /** Fills the last window with silence. Ends the stream. */
  finish(): void {
    this.#drainResampler();
    this.#drainSuppressor();
    if (this.#filled === 0) return;
    this.#original.fill(0, this.#filled);
    this.#improved.fill(0, this.#filled);
    this.#filled = 0;
    this.#sink(this.#original, this.#improved);
  }

  /** Discards buffered samples. Idempotent, also after `finish`. */
  close(): void {
    this.#suppressor?.close();
    this.#suppressor = null;
  }

  dump(): unknown {
    return { enhancement: this.#enhancement, strength: this.#suppressor === null ? 0 : this.#strength };
  }

  #drainResampler(): void {
    if (this.#resampler === null) return;
    this.#makeRoom(0);
    this.#take(this.#converted, this.#resampler.flush(this.#converted));
    this.#resampler = null;
  }

  #drainSuppressor(): void {
    const suppressor = this.#suppressor;
    this.#suppressor = null;
    suppressor?.finish(this.#emit);
  }

  #makeRoom(count: number): void {
    const bound = this.#resampler?.outputBound(count) ?? 0;
    if (bound > this.#converted.length) this.#converted = new Float32Array(bound);
  }

  #take(block: Float32Array, count: number): void {
    for (let i = 0; i < count; i++) {
      // A high-pass at 2.5 Hz removes the offset of cheap converters.
      const sample = block[i]!;
      this.#directOut = sample - this.#directIn + DIRECT_DECAY * this.#directOut;
      this.#directIn = sample;
      block[i] = this.#directOut;
    }
    this.#samples += count;
    if (this.#suppressor !== null) this.#suppressor.push(block, count, this.#emit);
    else for (let i = 0; i < count; i++) this.#emit(block[i]!, block[i]!);
  }

  readonly #emit = (sample: number, quiet: number): void => {
    this.#original[this.#filled] = sample;
    this.#improved[this.#filled] = this.#toInteger(sample + this.#strength * (quiet - sample));
    this.#filled += 1;
    if (this.#filled < WINDOW_SAMPLES) return;
    this.#filled = 0;
    this.#sink(this.#original, this.#improved);
  };

  #toInteger(sample: number): number {
    const isEmptyInPart = this.#isUpsampled || this.#suppressor !== null;
    const dithered = isEmptyInPart ? sample + this.#dither() : sample;
    return Math.max(-32_768, Math.min(32_767, Math.round(dithered)));
  }

  /** Prevents empty bands, whose logarithms recognisers were not trained on. */
  #dither(): number {
    // Xorshift (Marsaglia 2003), with the same seed for every stream, so that the same audio yields the same text.
    this.#noise ^= this.#noise << 13;
    this.#noise ^= this.#noise >>> 17;
    this.#noise ^= this.#noise << 5;
    return (this.#noise / 2 ** 31) * DITHER_STEPS;
  }
}

const DIRECT_DECAY = 0.999;
const DITHER_STEPS = 3;
const LIGHT_STRENGTH = 0.5;
/** Noise suppression helps recognisers in noise, and slightly harms clean audio. */
const CLEAN_SNR_DB = 30;
const NOISY_SNR_DB = 20;
/** Per window: from none to full in a third of a second. */
const MOST_CHANGE = 0.1;
