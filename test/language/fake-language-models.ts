import { collectCompletion } from '../../language/collect-completion.ts';
import type {
  Completion,
  CompletionPart,
  CompletionRequest,
  FinishReason,
  LanguageModel,
  LanguageModels,
  TokenUsage,
  ToolCall,
} from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';

/** One answer, in this order: reasoning, text, tool calls, then error, silence or end. */
export interface ScriptedAnswer {
  reasoning?: string;
  /** One text part per string. */
  text?: string | readonly string[];
  toolCalls?: readonly ToolCall[];
  error?: Error;
  /** Waits for the abort signal instead of ending. */
  neverEnds?: boolean;
  /** Default: `tool_calls` if there are any, otherwise `stop`. */
  finishReason?: FinishReason;
  /** Default: 10 prompt and 5 completion tokens, as counted by an engine. */
  usage?: Partial<TokenUsage>;
}

/**
 * Language models that give one queued answer per request and record the requests. With an empty queue they call
 * `otherwise`, or fail without it.
 */
export class FakeLanguageModels implements LanguageModels {
  readonly requests: CompletionRequest[] = [];
  /** Results in the order of completion; `left` when the reader stopped early. */
  readonly endings: ('finished' | 'failed' | 'aborted' | 'left')[] = [];
  /** Empty: `LLM_NOT_CONFIGURED`. */
  models: LanguageModel[] = [modelOf('tiny-1.0')];
  /** Maps to the first model by default. */
  readonly aliasTable = new Map([
    ['svc-tiny', 'tiny-1.0'],
    ['jev-latest', 'tiny-1.0'],
  ]);
  otherwise: ((request: CompletionRequest) => ScriptedAnswer | string) | null = null;
  cached = false;
  isClosed = false;
  readonly #queue: ScriptedAnswer[] = [];

  queue(...answers: (ScriptedAnswer | string | Error)[]): this {
    this.#queue.push(...answers.map(asAnswer));
    return this;
  }

  get queued(): number {
    return this.#queue.length;
  }

  async list() {
    return { models: [...this.models], cached: this.cached };
  }

  async aliases() {
    const ids = new Set(this.models.map(({ id }) => id));
    return new Map([...this.aliasTable].filter(([, id]) => ids.has(id)));
  }

  async resolve(name: string | null): Promise<LanguageModel> {
    const [usual] = this.models;
    if (usual === undefined) throw new TandemError('LLM_NOT_CONFIGURED', 'No language model is configured.');
    if (name === null) return usual;
    const id = this.aliasTable.get(name) ?? name;
    const model = this.models.find((candidate) => candidate.id === id);
    if (model === undefined) throw new TandemError('MODEL_NOT_FOUND', 'There is no language model of that name.');
    return model;
  }

  async *stream(request: CompletionRequest): AsyncGenerator<CompletionPart, void> {
    this.requests.push(request);
    let ending: 'finished' | 'failed' | 'aborted' | 'left' = 'left';
    try {
      const { id } = await this.resolve(request.model);
      const answer = this.#queue.shift() ?? asAnswer(this.otherwise?.(request) ?? new Error('no answer was scripted'));
      for (const part of partsOf(answer)) {
        request.signal.throwIfAborted();
        yield part;
      }
      request.signal.throwIfAborted();
      if (answer.neverEnds) await forever(request.signal);
      if (answer.error !== undefined) throw answer.error;
      ending = 'finished';
      yield { type: 'finished', reason: reasonOf(answer), usage: usageOf(answer), model: id };
    } catch (error) {
      ending = request.signal.aborted ? 'aborted' : 'failed';
      throw error;
    } finally {
      this.endings.push(ending);
    }
  }

  async complete(request: CompletionRequest): Promise<Completion> {
    return await collectCompletion(this.stream(request));
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

export function modelOf(id: string, more: Partial<LanguageModel> = {}): LanguageModel {
  return {
    id,
    created: 1_767_225_600,
    ownedBy: 'test',
    description: 'A scripted model',
    contextTokens: 8_192,
    ...more,
  };
}

function asAnswer(answer: ScriptedAnswer | string | Error): ScriptedAnswer {
  if (answer instanceof Error) return { error: answer };
  return typeof answer === 'string' ? { text: answer } : answer;
}

function* partsOf({ reasoning, text = [], toolCalls = [] }: ScriptedAnswer): Generator<CompletionPart> {
  if (reasoning !== undefined) yield { type: 'reasoning', text: reasoning };
  for (const piece of [text].flat()) yield { type: 'text', text: piece };
  for (const [index, { id, name, arguments: written }] of toolCalls.entries()) {
    // In two chunks, as servers send them.
    const middle = Math.floor(written.length / 2);
    yield { type: 'toolCall', index, id, name, arguments: written.slice(0, middle) };
    yield { type: 'toolCall', index, id: null, name: null, arguments: written.slice(middle) };
  }
}

function reasonOf({ finishReason, toolCalls = [] }: ScriptedAnswer): FinishReason {
  return finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop');
}

function usageOf({ usage }: ScriptedAnswer): TokenUsage {
  return { promptTokens: 10, completionTokens: 5, isEstimated: false, ...usage };
}

async function forever(signal: AbortSignal): Promise<never> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return await aborted.promise;
}
