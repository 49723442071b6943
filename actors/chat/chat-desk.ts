import type { CorrectionRequest } from '../../language/correction/text-correction.ts';
import type { ChatMessage, CompletionRequest, FinishReason, TokenLogprob, TokenUsage } from '../../language/llm.ts';
import type { Charge } from '../../storage/ledger.ts';

/** Completions as `http/` sees them. Implemented in `chat-desk.actor.ts`. */
export interface ChatDesk {
  /**
   * Sets aside what the answer may cost and begins to generate it. The signal is to abort when nobody listens any more:
   * with a `TandemError` where that is our doing, and then nothing is owed; whose credentials end (`UNAUTHORIZED`) has
   * left by themselves.
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `LLM_UNAVAILABLE`, `VALIDATION_FAILED` (tool calls and
   * results do not match), `CHAT_NOT_FOUND`, `CHAT_BUSY`, `INSUFFICIENT_CREDITS`, `SHUTTING_DOWN`; the signal's reason
   */
  ask(request: AskRequest, signal: AbortSignal): Promise<Answering>;
  /** No completion begins any more; resolves when how those that run ended is stored, or storage is out of reach. */
  close(): Promise<void>;
}

export interface AskRequest {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** The chat that goes on; null: none, or a new one. */
  chatId: string | null;
  /** Whether the chat keeps what is said. */
  savesChat: boolean;
  /** Id or alias; null: the usual one. */
  model: string | null;
  what: ChatAsk | CorrectionAsk;
}

/** Not the engine's business: who is asked, with what in front, and how much it may produce at most. */
export interface ChatAsk
  extends Omit<CompletionRequest, 'model' | 'signal' | 'patienceMs' | 'turnWithinMs' | 'retries'> {
  mode: 'chat';
  messages: readonly ChatMessage[];
  /** Number of answers to generate; the chat keeps the first. Default 1. */
  choices?: number;
}

/** Nothing of the chat goes in front of a text to correct. */
export interface CorrectionAsk extends Omit<CorrectionRequest, 'model' | 'signal'> {
  mode: 'correct';
}

export interface Answering {
  id: string;
  /** Null: nothing is kept of it. */
  chatId: string | null;
  isNewChat: boolean;
  /** The versioned id of the model. */
  model: string;
  createdAt: Date;
  /**
   * The answer, as fast as it is taken; the last part is `finished`, once it is stored.
   * @throws TandemError `LLM_UNAVAILABLE`, `LLM_RATE_LIMITED`, `LLM_TIMEOUT`, `LLM_REQUEST_REFUSED`,
   * `CONTEXT_LENGTH_EXCEEDED`, and nothing is owed; the signal's reason
   */
  parts: AsyncGenerator<AnswerPart, void>;
}

export type AnswerPart = ChoicePiece | FinishedAnswer;

/** `choice` is the position of the answer, from 0. The pieces of several answers come as they are generated. */
export type ChoicePiece = AnswerPiece & { choice: number };

export type AnswerPiece =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A piece of the call of that index; `id` and `name` come with its first piece. */
  | { type: 'toolCall'; index: number; id: string | null; name: string | null; arguments: string }
  /** Of text that was produced just before. */
  | { type: 'logprobs'; tokens: readonly TokenLogprob[] };

export interface FinishedAnswer {
  type: 'finished';
  /** One per choice. */
  reasons: readonly FinishReason[];
  /** What is charged. */
  usage: TokenUsage;
  model: string;
  /** Null: nothing was charged, or storage takes so long that it is not known yet. */
  charge: Charge | null;
  /** Since it was asked. */
  responseTimeMs: number;
}
