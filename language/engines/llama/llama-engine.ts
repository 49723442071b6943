import { Gate } from '../../../runtime/gate.ts';
import { type LanguageEngine, LanguageEngineError } from '../../engine.ts';
import type { CompletionPart, CompletionRequest, LanguageModel } from '../../llm.ts';
import { KeptLlama } from './kept-llama.ts';
import { type ModelFile, readModelFile } from './model-file.ts';
import type { AnswerRequest, Loaded } from './protocol.ts';

export interface LlamaEngineOptions {
  /** Path of a GGUF file. */
  modelPath: string;
  /** Concurrent answers; further requests queue. At most 64. Default 2. */
  concurrency?: number;
  /** Limit of prompt and answer together, per answer. Default: as the model was trained, at most 8192. */
  contextTokens?: number;
  /** Called with the reason when the model's process exits or fails to start. Safe to log. */
  onTrouble?: (message: string) => void;
  /** Module that the process runs. Default: llama.cpp. */
  entry?: URL;
  /** Pause before a restart; doubles up to a minute with each exit that no answer preceded. Default 1 s. */
  firstPauseMs?: number;
}

export interface LlamaEngine extends LanguageEngine {
  /** Process id; undefined while no process runs. */
  readonly pid: number | undefined;
}

/**
 * Runs a model file on this machine with llama.cpp, in a separate process that starts on the first request. A crash
 * only fails the answers in progress.
 */
export function createLlamaEngine(options: LlamaEngineOptions): LlamaEngine {
  return new LocalEngine(options);
}

/** No tokenizer has longer tokens for natural text. A longer prompt is rejected without tokenizing it. */
const MOST_BYTES_PER_TOKEN = 64;

class LocalEngine implements LlamaEngine {
  readonly name = 'llama';
  readonly #modelPath: string;
  readonly #kept: KeptLlama;
  readonly #closed = new AbortController();
  readonly #answers: Gate;
  /** The first model loaded. Kept so that it stays known during a restart. */
  #model: { file: ModelFile; loaded: Loaded } | null = null;

  constructor({
    modelPath,
    concurrency = 2,
    contextTokens,
    onTrouble = () => {},
    entry = new URL('./child.ts', import.meta.url),
    firstPauseMs = 1000,
  }: LlamaEngineOptions) {
    this.#modelPath = modelPath;
    const sequences = Math.min(64, Math.max(1, concurrency));
    this.#answers = new Gate({ inAll: sequences });
    this.#kept = new KeptLlama({
      process: {
        entry,
        load: { type: 'load', modelPath, sequences, contextTokens: contextTokens ?? null },
      },
      firstPauseMs,
      onTrouble,
    });
  }

  get pid(): number | undefined {
    return this.#kept.pid;
  }

  async models(signal: AbortSignal): Promise<LanguageModel[]> {
    const { file, loaded } = await this.#known(signal);
    return [
      {
        id: file.id,
        created: file.created,
        ownedBy: 'local',
        description: loaded.description,
        contextTokens: loaded.contextTokens,
      },
    ];
  }

  async *stream(request: CompletionRequest & { model: string }): AsyncGenerator<CompletionPart, void> {
    const signal = AbortSignal.any([request.signal, this.#closed.signal]);
    const { file, loaded } = await this.#known(signal);
    if (request.model !== file.id) throw new LanguageEngineError('model_not_found', `the model here is ${file.id}`);
    refuseTooLong(request, loaded.contextTokens);
    const leave = await this.#answers.enter({ signal });
    let idle: Promise<void> = Promise.resolve();
    try {
      const process = await this.#kept.process(signal);
      const parts = process.answer(answerRequestOf(request), signal);
      try {
        let next = await parts.next();
        for (; next.done !== true; next = await parts.next()) yield next.value;
        this.#kept.answered();
        const { reason, promptTokens, completionTokens } = next.value;
        yield {
          type: 'finished',
          reason,
          usage: { promptTokens, completionTokens, isEstimated: false },
          model: file.id,
        };
      } finally {
        await parts.return(NO_END);
        idle = process.idle();
      }
    } finally {
      // The slot is busy until the process has stopped the answer.
      void idle.then(leave);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new LanguageEngineError('unavailable', 'the engine was closed'));
    await this.#kept.close();
  }

  async #known(signal: AbortSignal): Promise<{ file: ModelFile; loaded: Loaded }> {
    if (this.#model === null) {
      const file = await readModelFile(this.#modelPath);
      const process = await this.#kept.process(signal);
      this.#model = { file, loaded: await process.loaded };
    }
    return this.#model;
  }
}

const NO_END = { reason: 'stop', promptTokens: 0, completionTokens: 0 } as const;

function answerRequestOf(request: CompletionRequest): AnswerRequest {
  return {
    messages: request.messages.map((message) =>
      message.role === 'assistant' ? { ...message, toolCalls: [...(message.toolCalls ?? [])] } : { ...message },
    ),
    tools: [...(request.tools ?? [])],
    toolChoice: request.toolChoice ?? 'auto',
    responseSchema: request.responseSchema?.schema ?? null,
    temperature: request.temperature ?? null,
    topP: request.topP ?? null,
    topK: request.topK ?? null,
    seed: request.seed ?? null,
    maxTokens: request.maxTokens ?? null,
    stop: (request.stop ?? []).filter((text) => text !== ''),
    enableThinking: request.enableThinking ?? false,
  };
}

function refuseTooLong({ messages }: CompletionRequest, contextTokens: number): void {
  const bytes = messages.reduce((bytes, { content }) => bytes + Buffer.byteLength(content ?? ''), 0);
  if (bytes <= contextTokens * MOST_BYTES_PER_TOKEN) return;
  throw new LanguageEngineError('context_too_long', `${bytes} bytes do not fit ${contextTokens} tokens`);
}
