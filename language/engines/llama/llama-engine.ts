import { Gate } from '../../../runtime/gate.ts';
import { type LanguageEngine, LanguageEngineError } from '../../engine.ts';
import type { CompletionPart, CompletionRequest, LanguageModel } from '../../llm.ts';
import { KeptLlama } from './kept-llama.ts';
import { type ModelFile, readModelFile } from './model-file.ts';
import type { AnswerRequest, Loaded } from './protocol.ts';

export interface LlamaEngineOptions {
  /** Of a GGUF file. */
  modelPath: string;
  /** Answers it produces side by side; more wait their turn. At most 64. Default 2. */
  concurrency?: number;
  /** Of prompt and answer together, for each answer. Default: what the model was trained with, at most 8192. */
  contextTokens?: number;
  /** Told when the process of the model ends or does not start, and why: for a log, and nothing in it is anybody's. */
  onTrouble?: (message: string) => void;
  /** What the process runs. Default: llama.cpp. */
  entry?: URL;
  /** Before the process is started again; doubles up to a minute with each end that no answer came between. Default 1 s. */
  firstPauseMs?: number;
}

export interface LlamaEngine extends LanguageEngine {
  /** Of the process of the model; undefined while there is none. */
  readonly pid: number | undefined;
}

/**
 * A model file on this machine, run by llama.cpp in a process of its own, which is started when somebody asks for it. A
 * crash costs the answers under way.
 */
export function createLlamaEngine(options: LlamaEngineOptions): LlamaEngine {
  return new LocalEngine(options);
}

/** No tokenizer makes fewer tokens of a text that anybody wrote: so much is refused before it is looked at. */
const MOST_BYTES_PER_TOKEN = 64;

class LocalEngine implements LlamaEngine {
  readonly name = 'llama';
  readonly #modelPath: string;
  readonly #kept: KeptLlama;
  readonly #closed = new AbortController();
  readonly #answers: Gate;
  /** What was loaded first: known while the process is being started again. */
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
      // A process that still stops an answer has no room for another.
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
