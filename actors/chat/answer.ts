import { randomUUID } from 'node:crypto';
import type { CorrectionPart } from '../../language/correction/text-correction.ts';
import type { CompletionPart, FinishReason, TokenUsage, ToolCall } from '../../language/llm.ts';
import { storable } from '../../storage/queries/chats.ts';
import type { AnswerPiece } from './chat-desk.ts';
import { StorableText } from './storable-text.ts';
import { RunningCount, type TokenCounter } from './token-count.ts';

/** How a model says that it is done. */
export interface AnswerEnd {
  reason: FinishReason;
  /** Null: it was cut off, so nobody says. */
  usage: TokenUsage | null;
  model: string | null;
}

/** What is stored of an answer. */
type WrittenPiece = Exclude<AnswerPiece, { type: 'logprobs' }>;

/** What a model has produced so far. */
export class Answer {
  text = '';
  /** Counted by us. */
  tokens = 0;
  end: AnswerEnd | null = null;
  /** What correcting a text has used so far; null where nobody says before the end. */
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
   * The pieces of an answer, each as it can be stored, and written down here before it is passed on. It is cut off where
   * it would come to more than so many tokens, whatever the engine was told of that.
   */
  async *from(
    source: AsyncIterable<CompletionPart | CorrectionPart>,
    { mostTokens }: { mostTokens: number },
  ): AsyncGenerator<AnswerPiece, void> {
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

  /** As much as there is room for: some servers send all that a model says in one piece. Null: nothing. */
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

  /** What waits for a second half that does not come. */
  *#cutOff(): Generator<WrittenPiece> {
    for (const [where, written] of this.#written) {
      const text = written.end();
      if (text === '') continue;
      if (typeof where === 'string') yield { type: where, text };
      else yield { type: 'toolCall', index: where, id: null, name: null, arguments: text };
    }
  }

  /** Of a call: its index. */
  #writtenIn(where: 'text' | 'reasoning' | number): StorableText {
    const written = this.#written.get(where) ?? new StorableText();
    this.#written.set(where, written);
    return written;
  }

  #noted(piece: WrittenPiece): WrittenPiece {
    if (piece.type === 'text') this.text += piece.text;
    return piece.type === 'toolCall' ? this.#notedCall(piece) : piece;
  }

  /** Results name the call they are of, so each has an id of its own, even where the model gave none that can be sent back. */
  #notedCall(part: Extract<AnswerPiece, { type: 'toolCall' }>): WrittenPiece {
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
