import { randomUUID } from 'node:crypto';
import type { CorrectionPart } from '../../language/correction/text-correction.ts';
import type { CompletionPart, FinishReason, TokenUsage, ToolCall } from '../../language/llm.ts';
import type { AnswerPiece } from './chat-desk.ts';
import type { TokenCounter } from './token-count.ts';

/** How a model says that it is done. */
export interface AnswerEnd {
  reason: FinishReason;
  /** Null: it was cut off, so nobody says. */
  usage: TokenUsage | null;
  model: string | null;
}

/** What a model has produced so far. */
export class Answer {
  text = '';
  /** Counted by us. */
  tokens = 0;
  end: AnswerEnd | null = null;
  readonly #counter: TokenCounter;
  readonly #calls = new Map<number, ToolCall>();

  constructor(counter: TokenCounter) {
    this.#counter = counter;
  }

  /**
   * The pieces of an answer, each written down here before it is passed on. It is cut off before the piece that would
   * come to more than so many tokens, whatever the engine was told of that.
   */
  async *from(
    source: AsyncIterable<CompletionPart | CorrectionPart>,
    { mostTokens }: { mostTokens: number },
  ): AsyncGenerator<AnswerPiece, void> {
    for await (const part of source) {
      if (part.type === 'finished') {
        const reason = 'reason' in part ? part.reason : 'stop';
        this.end = { reason, usage: part.usage, model: part.model };
        return;
      }
      const isNewCall = part.type === 'toolCall' && !this.#calls.has(part.index);
      const written = part.type === 'toolCall' ? `${part.name ?? ''}${part.arguments}` : part.text;
      const tokens = await this.#counter.text(written);
      if (this.tokens + tokens > mostTokens) {
        this.end = { reason: 'length', usage: null, model: null };
        return;
      }
      this.tokens += tokens;
      yield part.type === 'toolCall' ? this.#noted(part, isNewCall) : this.#told(part);
    }
    throw new Error('the answer ended before it was finished');
  }

  /** In the order in which the model began them. */
  get toolCalls(): ToolCall[] {
    return [...this.#calls].sort(([a], [b]) => a - b).map(([, call]) => call);
  }

  #told(part: Extract<AnswerPiece, { text: string }>): AnswerPiece {
    if (part.type === 'text') this.text += part.text;
    return part;
  }

  /** Results name the call they are of, so each has an id of its own, even where the model gave none. */
  #noted(part: Extract<AnswerPiece, { type: 'toolCall' }>, isNew: boolean): AnswerPiece {
    const before = this.#calls.get(part.index) ?? { id: '', name: '', arguments: '' };
    const isTaken = [...this.#calls.values()].some(({ id }) => id === part.id);
    const id = isNew ? (part.id && !isTaken ? part.id : `call_${randomUUID()}`) : before.id;
    const name = before.name === '' ? (part.name ?? '') : before.name;
    this.#calls.set(part.index, { id, name, arguments: before.arguments + part.arguments });
    return { ...part, id: isNew ? id : null, name: before.name === '' ? part.name : null };
  }
}
