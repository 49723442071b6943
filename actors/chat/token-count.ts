import type { ChatMessage } from '../../language/llm.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { Slice } from '../../runtime/slices.ts';
import type { CountedMessage } from './conversation.ts';

/** Characters that are counted in one go. What a word loses by being cut there is one token in hundreds. */
const CHARACTERS_AT_A_TIME = 1_024;
/** Role and separators. */
const TOKENS_PER_MESSAGE = 4;

/** Counts long texts without keeping anybody else waiting. */
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

/** So many characters are counted again with what follows. Beyond them, what a word loses by the cut matters little. */
const TAIL = 128;

/** Counts a text that comes in pieces as the whole that it is: each piece by itself may come to twice as many. */
export class RunningCount {
  readonly #counter: TokenCounter;
  #settled = 0;
  #tail = '';

  constructor(counter: TokenCounter) {
    this.#counter = counter;
  }

  /** Of everything up to this piece. */
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
