import type OpenAI from 'openai';
import { type LanguageEngine, LanguageEngineError } from '../../engine.ts';
import type { CompletionPart, CompletionRequest, LanguageModel, TokenUsage } from '../../llm.ts';
import { countTokens } from '../../tokens.ts';
import { ChatAnswer } from './chat-answer.ts';
import { type ChatBody, chatBody, type OptionalField, optionalFieldsOf } from './chat-request.ts';
import type { ModelServerAddress } from './openai-client.ts';
import { serverRefusal, wordsOfRefusal } from './server-refusal.ts';

export interface OpenAiLanguageEngineOptions extends ModelServerAddress {
  /** Timeout of listing models. Default 10 000. */
  listWithinMs?: number;
}

type EngineRequest = CompletionRequest & { model: string };

/**
 * An engine for any server with OpenAI's `/chat/completions` and `/models`. Omits optional fields that the server
 * rejects.
 */
export function createOpenAiLanguageEngine(options: OpenAiLanguageEngineOptions): LanguageEngine {
  return new OpenAiEngine(options);
}

class OpenAiEngine implements LanguageEngine {
  readonly name = 'openai';
  readonly #address: ModelServerAddress;
  readonly #listWithinMs: number;
  readonly #client: Promise<OpenAI>;
  /** Fields that the server rejects, by model. */
  readonly #refused = new Map<string, ReadonlySet<OptionalField>>();

  constructor({ listWithinMs = LIST_WITHIN_MS, ...address }: OpenAiLanguageEngineOptions) {
    this.#listWithinMs = listWithinMs;
    this.#address = address;
    // Loads the package at start-up, because loading blocks the thread for a while.
    this.#client = import('./openai-client.ts').then(({ createOpenAiClient }) => createOpenAiClient(address));
    // Avoids an unhandled rejection. Requests see the failure.
    this.#client.catch(() => {});
  }

  async models(signal: AbortSignal): Promise<LanguageModel[]> {
    try {
      const client = await this.#client;
      const { data } = await client.models.list({ signal, timeout: this.#listWithinMs });
      return modelsOf(data);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#refusal(error);
    }
  }

  async *stream(request: EngineRequest): AsyncGenerator<CompletionPart, void> {
    const { signal } = request;
    const answer = new ChatAnswer({ wantsLogprobs: request.logprobs !== undefined });
    const mostCharacters = request.maxTokens === undefined ? MOST_CHARACTERS : charactersOf(request.maxTokens);
    try {
      const { chunks, body } = await this.#ask(request);
      try {
        for await (const chunk of chunks) {
          signal.throwIfAborted();
          yield* answer.read(chunk);
          if (answer.producedCharacters > mostCharacters) {
            answer.finishReason = 'length';
            break;
          }
        }
      } catch (error) {
        // After the finish reason, only the usage can be missing.
        if (answer.finishReason === null) throw error;
      }
      signal.throwIfAborted();
      if (!answer.hasBegun) throw new LanguageEngineError('unavailable', 'the model server answers with no completion');
      yield* answer.end();
      const usage = plausible(body, answer) ?? estimated(body, answer);
      yield { type: 'finished', reason: answer.reason, usage, model: request.model };
    } catch (error) {
      signal.throwIfAborted();
      throw this.#refusal(error);
    }
  }

  async close(): Promise<void> {}

  /**
   * Resolves with the headers of a response. Repeats the request without rejected fields, and remembers them if that
   * helped.
   */
  async #ask(request: EngineRequest) {
    const client = await this.#client;
    const { signal } = request;
    const without = new Set(this.#refused.get(request.model));
    for (;;) {
      const body = chatBody(request, without);
      try {
        const chunks: AsyncIterable<unknown> = await client.chat.completions.create(body, { signal });
        this.#remember(request.model, without);
        return { chunks, body };
      } catch (error) {
        signal.throwIfAborted();
        const refused = refusedFields(error, body);
        if (refused.length === 0 || this.#refusal(error).code === 'context_too_long') throw error;
        for (const field of refused) without.add(field);
      }
    }
  }

  /**
   * Remembers only fields that every request has, and only if no others were omitted. Otherwise one client's bad value
   * would disable a field for all clients.
   */
  #remember(model: string, without: ReadonlySet<OptionalField>): void {
    if (without.size === 0 || ![...without].every((field) => OF_EVERY_REQUEST.has(field))) return;
    if (this.#refused.size >= MOST_MODELS) this.#refused.clear();
    this.#refused.set(model, without);
  }

  #refusal(error: unknown): LanguageEngineError {
    return serverRefusal(error, this.#address);
  }
}

const LIST_WITHIN_MS = 10_000;
/** Limit of an answer without a token limit. */
const MOST_CHARACTERS = 1_000_000;
const MOST_MODELS = 1_000;

/** More characters than this many tokens can have. A longer answer comes from a server that ignores the limit. */
function charactersOf(tokens: number): number {
  return Math.min(MOST_CHARACTERS, 1_000 + 16 * tokens);
}

/** The fields that the server names; if it names none, all that are not part of OpenAI's API. */
function refusedFields(error: unknown, body: ChatBody): OptionalField[] {
  const words = wordsOfRefusal(error);
  if (words === '') return [];
  const sent = optionalFieldsOf(body);
  // The server may reject the value of `max_tokens`. Only a mention of the other name means that it rejects the name.
  const wordOf = (field: string) => (field === 'max_tokens' ? 'max_completion_tokens' : field);
  const isNamed = (field: string) => new RegExp(`\\b${wordOf(field)}\\b`).test(words);
  const named = sent.filter((field) => isNamed(field) || (isNamed('response_format') && IS_FORMAT.has(field)));
  if (named.length > 0) return named;
  // `include_usage`, `enable_thinking` and the like.
  return sent.filter((field) => !STANDARD.has(field));
}

const IS_FORMAT: ReadonlySet<OptionalField> = new Set(['json_schema', 'response_format']);
const OF_EVERY_REQUEST: ReadonlySet<OptionalField> = new Set(['stream_options', 'chat_template_kwargs', 'max_tokens']);
const STANDARD: ReadonlySet<OptionalField> = new Set([
  'temperature',
  'top_p',
  'seed',
  'max_tokens',
  'logprobs',
  'parallel_tool_calls',
]);

/** Returns the server's token counts, or null if they are impossible, because clients are charged for them. */
function plausible(body: ChatBody, { usage, producedCharacters }: ChatAnswer): TokenUsage | null {
  if (usage === null) return null;
  const shown = usage.promptTokens - MOST_HIDDEN_TOKENS;
  const isPromptPlausible = shown <= 0 || shown <= JSON.stringify([body.messages, body.tools]).length;
  const isPlausible = isPromptPlausible && usage.completionTokens <= producedCharacters + MOST_HIDDEN_TOKENS;
  return isPlausible ? { ...usage, isEstimated: false } : null;
}

function estimated(body: ChatBody, answer: ChatAnswer): TokenUsage {
  const prompt = body.messages.map(({ role, content }) => `${role}\n${content ?? ''}`).join('\n');
  const calls = body.messages.flatMap((message) => ('tool_calls' in message ? (message.tool_calls ?? []) : []));
  const tools = [...(body.tools ?? []), ...calls].map((tool) => JSON.stringify(tool)).join('\n');
  return {
    promptTokens: countTokens(prompt) + countTokens(tools) + TOKENS_PER_MESSAGE * body.messages.length,
    completionTokens: countTokens(answer.produced.join('')),
    isEstimated: true,
  };
}

/** Allowance for templates, and for reasoning that is counted but not returned. */
const MOST_HIDDEN_TOKENS = 262_144;
const TOKENS_PER_MESSAGE = 3;

function modelsOf(listed: unknown): LanguageModel[] {
  const models = new Map<string, LanguageModel>();
  for (const entry of Array.isArray(listed) ? listed.slice(0, MOST_MODELS) : []) {
    const model = modelOf(entry);
    if (model !== null && !models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}

function modelOf(entry: unknown): LanguageModel | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const { id, created, owned_by: owner, ...more } = entry as Record<string, unknown>;
  if (typeof id !== 'string' || !MODEL_ID.test(id) || NO_CHAT.test(id)) return null;
  return {
    id,
    created: Number.isSafeInteger(created) && (created as number) >= 0 ? (created as number) : 0,
    ownedBy: typeof owner === 'string' && MODEL_ID.test(owner) ? owner : 'unknown',
    description: `${id}, on a server that speaks OpenAI's protocol`,
    contextTokens: contextTokensOf(more),
  };
}

/** vLLM, OpenRouter and llama-server use different names. */
function contextTokensOf({
  max_model_len,
  context_length,
  context_window,
  meta,
}: Record<string, unknown>): number | null {
  const { n_ctx } = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>) : {};
  const candidates = [max_model_len, context_length, context_window, n_ctx];
  const tokens = candidates.find(
    (value) => Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < 1e9,
  );
  return (tokens as number | undefined) ?? null;
}

/** One printable line, because ids appear in lists and messages. */
const MODEL_ID = /^[\p{L}\p{N}\p{P}\p{S} ]{1,256}$/u;
/** Models on the server's list that are not for chat. */
const NO_CHAT = /embed|whisper|\btts\b|dall-e|moderation|transcribe|rerank/i;
