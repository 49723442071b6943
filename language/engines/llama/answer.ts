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
  /** Of the form; null when it has none. */
  grammar: LlamaGrammar | null;
  signal: AbortSignal;
  tell: (part: AnswerPart) => void;
}

/** The library gives up one token before the context is full. */
const KEPT_FREE_TOKENS = 2;
/** Read at once: whoever stops an answer waits for so many at most. */
const PROMPT_PIECE_TOKENS = 256;

/** What llama.cpp's own programs do. */
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

/** What the sequence holds of an earlier answer is not read again. The library reads the last token. */
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
  const { chat, contextTokens, grammar, signal, tell } = answering;
  const full = new AbortController();
  const parts = new Parts(form, request, tell);
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
      // An answer is of the whole conversation, or it ends: nothing is forgotten to make room.
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

/** What of a generation is told, and when. */
class Parts {
  readonly #form: AnswerForm;
  readonly #request: AnswerRequest;
  readonly #tell: (part: AnswerPart) => void;
  #calls = 0;
  /** JSON that is looked at before it is told. */
  #kept = '';

  constructor(form: AnswerForm, request: AnswerRequest, tell: (part: AnswerPart) => void) {
    this.#form = form;
    this.#request = request;
    this.#tell = tell;
  }

  write(segment: string | null, text: string): void {
    if (text === '') return;
    if (segment !== null) {
      if (this.#request.enableThinking) this.#tell({ type: 'reasoning', text });
    } else if (this.#form.kind === 'json' && this.#form.read !== null) {
      this.#kept += text;
    } else {
      this.#tell({ type: 'text', text });
    }
  }

  call(name: string, params: unknown): void {
    const tool = this.#request.tools.find((one) => one.name === name);
    this.#tellCall(name, argumentsText(params, tool?.parameters ?? null));
  }

  end(stopReason: string): AnswerEnd['reason'] {
    if (stopReason === 'maxTokens') return 'length';
    if (this.#form.kind === 'json' && this.#form.read !== null) {
      const read = this.#form.read(JSON.parse(this.#kept));
      if ('call' in read) this.#tellCall(read.call.name, read.call.arguments);
      else this.#tell({ type: 'text', text: read.text });
    }
    return this.#calls > 0 ? 'tool_calls' : 'stop';
  }

  #tellCall(name: string, text: string): void {
    const id = `call_${crypto.randomUUID().replaceAll('-', '').slice(0, 24)}`;
    this.#tell({ type: 'toolCall', index: this.#calls++, id, name, arguments: text });
  }
}
