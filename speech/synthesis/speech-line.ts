import { isDeepStrictEqual } from 'node:util';
import { Resampler } from '../../media/dsp/resample.ts';
import { roundedSamples } from '../../media/dsp/rounded-samples.ts';
import type { Delivery } from './delivery.ts';
import { createSpeechEffects, type SpeechEffects } from './output/speech-effects.ts';

export interface LineSettings {
  sampleRateHz: number;
  effects: Delivery['effects'];
}

/**
 * Connects engines to an encoder: effects, then resampling. Both continue across clauses to avoid clicks. Keeps time:
 * every input sample comes out, with some delay.
 */
export class SpeechLine {
  readonly #outputRateHz: number;
  #settings: LineSettings | null = null;
  #effects: SpeechEffects | null = null;
  #resampler: Resampler | null = null;
  #resampled = new Float32Array(0);
  #positionMs = 0;

  constructor(outputRateHz: number) {
    this.#outputRateHz = outputRateHz;
  }

  /** Duration of the input so far. */
  get positionMs(): number {
    return this.#positionMs;
  }

  /** Returns output ready by now, at the output's rate. */
  process(samples: Int16Array<ArrayBuffer>, settings: LineSettings): Int16Array[] {
    const output: Int16Array[] = [];
    if (this.#settings === null || !isDeepStrictEqual(this.#settings, settings)) this.#change(settings, output);
    this.#positionMs += (samples.length * 1000) / settings.sampleRateHz;
    this.#resample(this.#effects!.process(samples), output);
    return output;
  }

  /** Returns the rest. Only `process` may follow. */
  flush(): Int16Array[] {
    const output: Int16Array[] = [];
    this.#endEffects(output);
    this.#endResampler(output);
    this.#settings = null;
    return output;
  }

  /** Settings of the last input, which silence must use too. Null before any input. */
  get settings(): LineSettings | null {
    return this.#settings;
  }

  #change(settings: LineSettings, output: Int16Array[]): void {
    const { sampleRateHz, effects } = settings;
    if (this.#effects !== null && this.#settings?.sampleRateHz === sampleRateHz) {
      this.#effects.set(effects);
    } else {
      this.#endEffects(output);
      this.#endResampler(output);
      this.#resampler = sampleRateHz === this.#outputRateHz ? null : new Resampler(sampleRateHz, this.#outputRateHz);
      this.#effects = createSpeechEffects({ sampleRateHz, ...effects });
    }
    this.#settings = settings;
  }

  #endEffects(output: Int16Array[]): void {
    if (this.#effects !== null) this.#resample(this.#effects.flush(), output);
    this.#effects = null;
  }

  #endResampler(output: Int16Array[]): void {
    if (this.#resampler !== null) {
      this.#reserve(0, this.#resampler);
      output.push(roundedSamples(this.#resampled, this.#resampler.flush(this.#resampled)));
    }
    this.#resampler = null;
  }

  #resample(samples: Float32Array, output: Int16Array[]): void {
    if (samples.length === 0) return;
    const resampler = this.#resampler;
    if (resampler === null) {
      output.push(roundedSamples(samples, samples.length));
      return;
    }
    this.#reserve(samples.length, resampler);
    output.push(roundedSamples(this.#resampled, resampler.process(samples, samples.length, this.#resampled)));
  }

  #reserve(inputSamples: number, resampler: Resampler): void {
    const bound = resampler.outputBound(inputSamples);
    if (this.#resampled.length < bound) this.#resampled = new Float32Array(2 * bound);
  }
}
