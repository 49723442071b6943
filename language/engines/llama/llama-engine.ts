import { type LanguageEngine, LanguageEngineError } from '../../engine.ts';
import type { CompletionPart, LanguageModel } from '../../llm.ts';

export interface LlamaEngineOptions {
  /** Of a GGUF file. */
  modelPath: string;
  /** Answers it produces side by side; more wait their turn. Default 2. */
  concurrency?: number;
  /** Tokens of prompt and answer together, for each answer. Default: what the model was trained with, up to 8192, as far as memory goes. */
  contextTokens?: number;
}

/** A model file on this machine, run by llama.cpp in a child process. */
export function createLlamaEngine(options: LlamaEngineOptions): LanguageEngine {
  return new LlamaEngine(options);
}

class LlamaEngine implements LanguageEngine {
  readonly name = 'llama';
  readonly #options: LlamaEngineOptions;

  constructor(options: LlamaEngineOptions) {
    this.#options = options;
  }

  async models(): Promise<LanguageModel[]> {
    throw new LanguageEngineError('unavailable', `the model file ${this.#options.modelPath} is not loaded`);
  }

  // biome-ignore lint/correctness/useYield: it is not loaded
  async *stream(): AsyncGenerator<CompletionPart, void> {
    throw new LanguageEngineError('unavailable', `the model file ${this.#options.modelPath} is not loaded`);
  }

  async close(): Promise<void> {}
}
