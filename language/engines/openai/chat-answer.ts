import { randomUUID } from 'node:crypto';
import { LanguageEngineError } from '../../engine.ts';
import type { CompletionPart, FinishReason } from '../../llm.ts';
import { logprobsOf, recordOf } from './logprobs.ts';
import { ThinkSplitter } from './think-splitter.ts';

/** The server's counts; null if missing or not numbers. */
export interface CountedUsage {
  promptTokens: number;
  completionTokens: number;
}

/** Reads chunks of any shape and ignores what does not conform to OpenAI's API. */
export class ChatAnswer {
  /** Null until the server sends it. */
  finishReason: FinishReason | null = null;
  usage: CountedUsage | null = null;
  /** All text, reasoning and calls produced. */
  readonly produced: string[] = [];
  producedCharacters = 0;
  readonly #splitter = new ThinkSplitter();
  /** Calls by the server's index, with dense indices and the id that the server gave. */
  readonly #calls = new Map<string, { index: number; id: string | null }>();
  #callCount = 0;
  readonly #wantsLogprobs: boolean;
  #hasBegun = false;

  constructor({ wantsLogprobs }: { wantsLogprobs: boolean }) {
    this.#wantsLogprobs = wantsLogprobs;
  }

  /** Whether the server sent any part of an answer. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  read(chunk: unknown): CompletionPart[] {
    const { choices, usage } = recordOf(chunk);
    this.usage = usageOf(usage) ?? this.usage;
    const choice = Array.isArray(choices) ? recordOf(choices[0]) : {};
    // A server that does not stream sends the whole message.
    const delta = recordOf(choice.delta ?? choice.message);
    this.#hasBegun ||= Array.isArray(choices);
    const parts = [...this.#reasoning(delta), ...this.#text(delta), ...this.#toolCalls(delta.tool_calls)];
    if (this.#wantsLogprobs) parts.push(...logprobsOf(choice.logprobs));
    if (typeof choice.finish_reason === 'string') this.finishReason = reasonOf(choice.finish_reason);
    return parts;
  }

  /** Returns text held back, after the server's last chunk. */
  end(): CompletionPart[] {
    return this.#counted(this.#splitter.end());
  }

  /** Servers may report `stop` in spite of tool calls. */
  get reason(): FinishReason {
    const reason = this.finishReason ?? 'stop';
    return reason === 'stop' && this.#callCount > 0 ? 'tool_calls' : reason;
  }

  #reasoning({ reasoning_content, reasoning }: Record<string, unknown>): CompletionPart[] {
    const text = [reasoning_content, reasoning].find((value) => typeof value === 'string' && value !== '');
    return text === undefined ? [] : this.#counted([{ type: 'reasoning', text: text as string }]);
  }

  #text({ content }: Record<string, unknown>): CompletionPart[] {
    if (typeof content === 'string') return this.#counted(this.#splitter.push(content));
    if (!Array.isArray(content)) return [];
    // Some servers send the content in parts.
    return content.flatMap((part) => this.#text({ content: recordOf(part).text ?? null }));
  }

  #toolCalls(calls: unknown): CompletionPart[] {
    if (!Array.isArray(calls)) return [];
    return this.#counted(
      calls.slice(0, MOST_CALLS).flatMap((call, position) => this.#toolCall(recordOf(call), position)),
    );
  }

  #toolCall(call: Record<string, unknown>, position: number): CompletionPart[] {
    const { name, arguments: written } = recordOf(call.function);
    const id = typeof call.id === 'string' && call.id !== '' ? call.id.slice(0, MOST_NAME) : null;
    // Some servers send no indices, and each call in one piece.
    const isNumbered = Number.isSafeInteger(call.index);
    const key = isNumbered ? `#${call.index}` : (id ?? `at ${position}`);
    const known = this.#calls.get(key);
    const text = typeof written === 'string' ? written : written == null ? '' : JSON.stringify(written);
    const isNamed = typeof name === 'string' && name !== '';
    // Some servers, such as Gemini's, send every call with index 0. Without index and id, only the name begins a call.
    const hasOtherId = id !== null && known !== undefined && id !== known.id;
    const isAnother = isNamed && (hasOtherId || (!isNumbered && id === null));
    if (known !== undefined && !isAnother) {
      return text === '' ? [] : [{ type: 'toolCall', index: known.index, id: null, name: null, arguments: text }];
    }
    if (!isNamed) return [];
    if (this.#callCount >= MOST_CALLS) throw new LanguageEngineError('unavailable', 'the model calls too many tools');
    const index = this.#callCount++;
    this.#calls.set(key, { index, id });
    const first = { id: id ?? `call_${randomUUID()}`, name: name.slice(0, MOST_NAME) };
    return [{ type: 'toolCall', index, ...first, arguments: text }];
  }

  #counted(parts: CompletionPart[]): CompletionPart[] {
    for (const part of parts) {
      if (part.type === 'finished' || part.type === 'logprobs') continue;
      const text = part.type === 'toolCall' ? `${part.name ?? ''}${part.arguments}` : part.text;
      this.produced.push(text);
      this.producedCharacters += text.length;
    }
    return parts;
  }
}

const MOST_CALLS = 128;
const MOST_NAME = 256;
const MOST_TOKENS = 100_000_000;

function usageOf(value: unknown): CountedUsage | null {
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = recordOf(value);
  return isCount(promptTokens) && isCount(completionTokens) ? { promptTokens, completionTokens } : null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TOKENS;
}

function reasonOf(reason: string): FinishReason {
  switch (reason) {
    case 'length':
    case 'content_filter':
    case 'tool_calls':
      return reason;
    case 'function_call':
      return 'tool_calls';
    default:
      return 'stop';
  }
}
