import { randomUUID } from 'node:crypto';
import type { CorrectionPart } from '../../language/correction/text-correction.ts';
import type { CompletionPart, FinishReason, TokenUsage, ToolCall } from '../../language/llm.ts';
import { storable } from '../../storage/queries/chats.ts';
import type { AnswerDelta } from './chat-desk.ts';
import { StorableText } from './storable-text.ts';
import { RunningCount, type TokenCounter } from './token-count.ts';

/** End of an answer, as reported by the model. */
export interface AnswerEnd {
  reason: FinishReason;
  /** Null: it was cut off, so there is no report. */
  usage: TokenUsage | null;
  model: string | null;
}

/** Pieces that are stored. */
type WrittenPiece = Exclude<AnswerDelta, { type: 'logprobs' }>;

export class Answer {
  text = '';
  /** Our own count. */
  tokens = 0;
  end: AnswerEnd | null = null;
  /** Usage of a correction so far; null if it is reported only at the end. */
  used: TokenUsage | null = null;
  readonly #counter: TokenCounter;
  readonly #count: RunningCount;
  readonly #calls = new Map<number, ToolCall>();
  readonly #written = new Map<'text' | 'reasoning' | number, StorableText>();

  constructor(counter: TokenCounter) {
    this.#counter = counter;
    this.#count = new RunningCount(counter);
  }

  /**
   * Yields storable pieces of an answer and records them. Cuts the answer off at `mostTokens`, regardless of the limit
   * given to the engine.
   */
  async *from(
    source: AsyncIterable<CompletionPart | CorrectionPart>,
    { mostTokens }: { mostTokens: number },
  ): AsyncGenerator<AnswerDelta, void> {
    for await (const part of source) {
      if (part.type === 'finished') {
        for (const piece of this.#cutOff()) yield this.#noted(piece);
        const reason = 'reason' in part ? part.reason : 'stop';
        this.end = { reason, usage: part.usage, model: part.model };
        return;
      }
      if (part.type === 'used') {
        this.used = part.usage;
        continue;
      }
      if (part.type === 'logprobs') {
        yield part;
        continue;
      }
      const piece = this.#storable(part);
      const tokens = await this.#count.upTo(
        piece.type === 'toolCall' ? `${piece.name ?? ''}${piece.arguments}` : piece.text,
      );
      if (tokens > mostTokens) {
        const beginning = piece.type === 'toolCall' ? null : await this.#beginningOf(piece, { tokens, mostTokens });
        if (beginning !== null) yield this.#noted(beginning);
        this.end = { reason: 'length', usage: null, model: null };
        return;
      }
      this.tokens = tokens;
      yield this.#noted(piece);
    }
    throw new Error('the answer ended before it was finished');
  }

  /** In the order in which the model began them. */
  get toolCalls(): ToolCall[] {
    return [...this.#calls].sort(([a], [b]) => a - b).map(([, call]) => call);
  }

  /** Returns the part that fits, because some servers send an answer in one piece. Null: nothing fits. */
  async #beginningOf<Piece extends { text: string }>(
    piece: Piece,
    { tokens, mostTokens }: { tokens: number; mostTokens: number },
  ): Promise<Piece | null> {
    const room = mostTokens - this.tokens;
    let length = Math.floor((piece.text.length * room) / (tokens - this.tokens));
    for (; length > 0; length = Math.floor(length * 0.9)) {
      const cut = piece.text.slice(0, length);
      const text = cut.isWellFormed() ? cut : cut.slice(0, -1);
      const taken = await this.#counter.text(text);
      if (taken > room) continue;
      this.tokens += taken;
      return text === '' ? null : { ...piece, text };
    }
    return null;
  }

  #storable(part: WrittenPiece): WrittenPiece {
    if (part.type !== 'toolCall') return { ...part, text: this.#writtenIn(part.type).push(part.text) };
    const written = this.#writtenIn(part.index).push(part.arguments);
    return { ...part, name: part.name === null ? null : storable(part.name), arguments: written };
  }

  /** Yields halves of surrogate pairs whose second half never came. */
  *#cutOff(): Generator<WrittenPiece> {
    for (const [where, written] of this.#written) {
      const text = written.end();
      if (text === '') continue;
      if (typeof where === 'string') yield { type: where, text };
      else yield { type: 'toolCall', index: where, id: null, name: null, arguments: text };
    }
  }

  /** A number is the index of a tool call. */
  #writtenIn(where: 'text' | 'reasoning' | number): StorableText {
    const written = this.#written.get(where) ?? new StorableText();
    this.#written.set(where, written);
    return written;
  }

  #noted(piece: WrittenPiece): WrittenPiece {
    if (piece.type === 'text') this.text += piece.text;
    return piece.type === 'toolCall' ? this.#notedCall(piece) : piece;
  }

  /**
   * Gives each tool call a unique id, because results refer to it. The model's id may be missing, repeated or not
   * storable.
   */
  #notedCall(part: Extract<AnswerDelta, { type: 'toolCall' }>): WrittenPiece {
    const isNew = !this.#calls.has(part.index);
    const before = this.#calls.get(part.index) ?? { id: '', name: '', arguments: '' };
    const isTaken = [...this.#calls.values()].some(({ id }) => id === part.id);
    const isUsable = part.id !== null && part.id !== '' && !isTaken && part.id === storable(part.id);
    const id = isNew ? (isUsable ? part.id! : `call_${randomUUID()}`) : before.id;
    const name = before.name === '' ? (part.name ?? '') : before.name;
    this.#calls.set(part.index, { id, name, arguments: before.arguments + part.arguments });
    return { ...part, id: isNew ? id : null, name: before.name === '' ? part.name : null };
  }
}
