import { AnswerError } from './answer-error.ts';
import { type AnswerForm, answerFormOf, argumentsText } from './answer-form.ts';
import { historyOf } from './chat-history.ts';
import type {
  ChatWrapper,
  HistoryItem,
  LlamaChat,
  LlamaGrammar,
  LlamaModel,
  LlamaSequence,
  Token,
} from './node-llama-cpp.ts';
import type { AnswerEnd, AnswerPart, AnswerRequest } from './protocol.ts';

/** A request as the model reads it. */
export interface Prompt {
  request: AnswerRequest;
  form: AnswerForm;
  history: HistoryItem[];
  tokens: readonly Token[];
}

/** @throws AnswerError `refused`, `context_too_long` */
export function promptOf(
  request: AnswerRequest,
  { model, wrapper, contextTokens }: { model: LlamaModel; wrapper: ChatWrapper; contextTokens: number },
): Prompt {
  const form = answerFormOf(request);
  const history = historyOf(request.messages, form.instruction);
  const last = history.at(-1);
  const tokens = wrapper
    .generateContextState({
      chatHistory: last?.type === 'model' ? history : [...history, { type: 'model', response: [] }],
      availableFunctions: functionsOf(form) ?? undefined,
      documentFunctionParams: undefined,
    })
    .contextText.tokenize(model.tokenizer);
  if (tokens.length + KEPT_FREE_TOKENS >= contextTokens) {
    const counts = `${tokens.length} tokens of at most ${contextTokens - KEPT_FREE_TOKENS - 1}`;
    throw new AnswerError('context_too_long', `the prompt has ${counts}`);
  }
  return { request, form, history, tokens };
}

export interface Answering {
  chat: LlamaChat;
  sequence: LlamaSequence;
  contextTokens: number;
  /** Grammar of the form; null for free answers. */
  grammar: LlamaGrammar | null;
  signal: AbortSignal;
  emit: (part: AnswerPart) => void;
}

/** The library stops one token before the context is full. */
const KEPT_FREE_TOKENS = 2;
/** Tokens evaluated in one step. A stop waits for at most one step. */
const PROMPT_PIECE_TOKENS = 256;

/** Defaults of llama.cpp's own programs. */
const USUAL_TEMPERATURE = 0.8;
const USUAL_TOP_P = 0.95;
const USUAL_TOP_K = 40;

/** @throws AnswerError; the signal's reason */
export async function answer(prompt: Prompt, answering: Answering): Promise<AnswerEnd> {
  const { sequence } = answering;
  await readPrompt(prompt.tokens, answering);
  const before = sequence.tokenMeter.getState().usedOutputTokens;
  const reason = await generate(prompt, answering);
  return {
    reason,
    promptTokens: prompt.tokens.length,
    completionTokens: sequence.tokenMeter.getState().usedOutputTokens - before,
  };
}

/** Reuses what the sequence holds of an earlier answer. The library evaluates the last token itself. */
async function readPrompt(tokens: readonly Token[], { sequence, signal }: Answering): Promise<void> {
  const toRead = tokens.slice(0, -1);
  await sequence.adaptStateToTokens(toRead, false);
  for (let start = sequence.nextTokenIndex; start < toRead.length; start += PROMPT_PIECE_TOKENS) {
    signal.throwIfAborted();
    await sequence.evaluateWithoutGeneratingNewTokens(toRead.slice(start, start + PROMPT_PIECE_TOKENS));
  }
  signal.throwIfAborted();
}

async function generate(
  { request, form, history, tokens }: Prompt,
  answering: Answering,
): Promise<AnswerEnd['reason']> {
  const { chat, contextTokens, grammar, signal, emit } = answering;
  const full = new AbortController();
  const parts = new Parts(form, request, emit);
  const functions = functionsOf(form);
  try {
    const { metadata } = await chat.generateResponse(history, {
      signal: AbortSignal.any([signal, full.signal]),
      maxTokens: Math.min(
        request.maxTokens ?? Number.POSITIVE_INFINITY,
        contextTokens - tokens.length - KEPT_FREE_TOKENS,
      ),
      temperature: request.temperature ?? USUAL_TEMPERATURE,
      topP: request.topP ?? USUAL_TOP_P,
      topK: request.topK ?? USUAL_TOP_K,
      seed: request.seed ?? undefined,
      repeatPenalty: false,
      customStopTriggers: request.stop,
      budgets: request.enableThinking ? undefined : { thoughtTokens: 0 },
      // Never drops the start of the conversation to make room: the answer ends instead.
      contextShift: {
        strategy: ({ chatHistory }) => {
          full.abort();
          return { chatHistory };
        },
      },
      onResponseChunk: ({ segmentType, text }) => parts.write(segmentType ?? null, text),
      ...(grammar === null ? {} : { grammar }),
      ...(functions === null
        ? {}
        : { functions, onFunctionCall: ({ functionName, params }) => parts.call(functionName, params) }),
    });
    return parts.end(metadata.stopReason);
  } catch (error) {
    signal.throwIfAborted();
    if (full.signal.aborted) return parts.end('maxTokens');
    throw error;
  }
}

function functionsOf(form: AnswerForm): Extract<AnswerForm, { kind: 'free' }>['functions'] {
  return form.kind === 'free' ? form.functions : null;
}

/** Decides which parts of a generation are emitted, and when. */
class Parts {
  readonly #form: AnswerForm;
  readonly #request: AnswerRequest;
  readonly #emit: (part: AnswerPart) => void;
  #calls = 0;
  /** JSON that is checked before it is emitted. */
  #kept = '';

  constructor(form: AnswerForm, request: AnswerRequest, emit: (part: AnswerPart) => void) {
    this.#form = form;
    this.#request = request;
    this.#emit = emit;
  }

  write(segment: string | null, text: string): void {
    if (text === '') return;
    if (segment !== null) {
      if (this.#request.enableThinking) this.#emit({ type: 'reasoning', text });
    } else if (this.#form.kind === 'json' && this.#form.read !== null) {
      this.#kept += text;
    } else {
      this.#emit({ type: 'text', text });
    }
  }

  call(name: string, params: unknown): void {
    const tool = this.#request.tools.find((one) => one.name === name);
    this.#emitCall(name, argumentsText(params, tool?.parameters ?? null));
  }

  end(stopReason: string): AnswerEnd['reason'] {
    if (stopReason === 'maxTokens') return 'length';
    if (this.#form.kind === 'json' && this.#form.read !== null) {
      const read = this.#form.read(JSON.parse(this.#kept));
      if ('call' in read) this.#emitCall(read.call.name, read.call.arguments);
      else this.#emit({ type: 'text', text: read.text });
    }
    return this.#calls > 0 ? 'tool_calls' : 'stop';
  }

  #emitCall(name: string, text: string): void {
    const id = `call_${crypto.randomUUID().replaceAll('-', '').slice(0, 24)}`;
    this.#emit({ type: 'toolCall', index: this.#calls++, id, name, arguments: text });
  }
}
