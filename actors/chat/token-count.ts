import type { ChatMessage } from '../../language/llm.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { Slice } from '../../runtime/slices.ts';
import type { CountedMessage } from './conversation.ts';

/** Characters counted at once. Cutting a word there costs one token in hundreds. */
const CHARACTERS_AT_A_TIME = 1_024;
/** Role and separators. */
const TOKENS_PER_MESSAGE = 4;

/** Counts tokens of long texts in slices, without blocking the event loop. */
export class TokenCounter {
  readonly #count: CountTokens;
  readonly #slice = new Slice();

  constructor(count: CountTokens) {
    this.#count = count;
  }

  async text(text: string): Promise<number> {
    let tokens = 0;
    for (let start = 0; start < text.length; start += CHARACTERS_AT_A_TIME) {
      if (this.#slice.isOver) await this.#slice.rest();
      tokens += this.#count(text.slice(start, start + CHARACTERS_AT_A_TIME));
    }
    return tokens;
  }

  async message(message: ChatMessage): Promise<CountedMessage> {
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    let tokens = TOKENS_PER_MESSAGE + (await this.text(message.content ?? ''));
    for (const { name, arguments: given } of calls) {
      tokens += TOKENS_PER_MESSAGE + (await this.text(name)) + (await this.text(given));
    }
    return { message, tokens };
  }

  async messages(messages: readonly ChatMessage[]): Promise<CountedMessage[]> {
    const counted: CountedMessage[] = [];
    for (const message of messages) counted.push(await this.message(message));
    return counted;
  }
}

/** Characters that are counted again with the next piece. Beyond them, cutting a word matters little. */
const TAIL = 128;

/** Counts a streamed text as a whole, because its pieces alone may add up to twice as many tokens. */
export class RunningCount {
  readonly #counter: TokenCounter;
  #settled = 0;
  #tail = '';

  constructor(counter: TokenCounter) {
    this.#counter = counter;
  }

  /** Returns the total including this piece. */
  async upTo(piece: string): Promise<number> {
    this.#tail += piece;
    const tokens = this.#settled + (await this.#counter.text(this.#tail));
    if (this.#tail.length > TAIL) {
      this.#settled = tokens;
      this.#tail = '';
    }
    return tokens;
  }
}
