import type { CorrectionRequest } from '../../language/correction/text-correction.ts';
import type { ChatMessage, CompletionRequest, FinishReason, TokenLogprob, TokenUsage } from '../../language/llm.ts';
import type { Charge } from '../../storage/ledger.ts';

/** Completions for `http/`. Implemented in `chat-desk.actor.ts`. */
export interface ChatDesk {
  /**
   * Holds the maximum price and starts to generate. Abort the signal when the client leaves. If the server ends the
   * request, abort with a `TandemError`; then nothing is owed, except for `UNAUTHORIZED` (ended credentials).
   * @throws TandemError `LLM_NOT_CONFIGURED`, `MODEL_NOT_FOUND`, `LLM_UNAVAILABLE`, `VALIDATION_FAILED` (tool calls and
   * results do not match), `CHAT_NOT_FOUND`, `CHAT_BUSY`, `INSUFFICIENT_CREDITS`, `SHUTTING_DOWN`; the signal's reason
   */
  ask(request: AskRequest, signal: AbortSignal): Promise<AnswerStream>;
  /** Accepts no further requests. Resolves when the results of running ones are stored or storage is out of reach. */
  close(): Promise<void>;
}

/** A request with its owner, chat and model. */
export interface AskRequest {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** Chat to continue; null: none, or a new one. */
  chatId: string | null;
  /** Whether to store messages and answer in a chat. */
  savesChat: boolean;
  /** Id or alias; null: the default model. */
  model: string | null;
  what: ChatAsk | CorrectionAsk;
}

/** Message request. The desk sets the model, the chat's earlier messages and the token limit. */
export interface ChatAsk
  extends Omit<CompletionRequest, 'model' | 'signal' | 'patienceMs' | 'turnWithinMs' | 'retries'> {
  mode: 'chat';
  messages: readonly ChatMessage[];
  /** Number of answers to generate; the chat stores the first. Default 1. */
  choices?: number;
}

/** Correction request. The chat's earlier messages are not sent. */
export interface CorrectionAsk extends Omit<CorrectionRequest, 'model' | 'signal'> {
  mode: 'correct';
}

/** An accepted request, whose answer is being generated. */
export interface AnswerStream {
  id: string;
  /** Null: not stored in a chat. */
  chatId: string | null;
  isNewChat: boolean;
  /** Versioned model id. */
  model: string;
  createdAt: Date;
  /**
   * Answer parts, produced as fast as they are consumed. The last one is `finished`, once the result is stored.
   * @throws TandemError `LLM_UNAVAILABLE`, `LLM_RATE_LIMITED`, `LLM_TIMEOUT`, `LLM_REQUEST_REFUSED`,
   * `CONTEXT_LENGTH_EXCEEDED`, and nothing is owed; the signal's reason
   */
  parts: AsyncGenerator<AnswerPart, void>;
}

export type AnswerPart = ChoiceDelta | FinishedAnswer;

/** `choice` is the position of the answer, from 0. Deltas of several answers are interleaved. */
export type ChoiceDelta = AnswerDelta & { choice: number };

export type AnswerDelta =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** Part of a tool call; the first part has `id` and `name`. */
  | { type: 'toolCall'; index: number; id: string | null; name: string | null; arguments: string }
  /** Probabilities of the text just produced. */
  | { type: 'logprobs'; tokens: readonly TokenLogprob[] };

/** Result of the request, after all deltas. */
export interface FinishedAnswer {
  type: 'finished';
  /** One per choice. */
  reasons: readonly FinishReason[];
  usage: TokenUsage;
  model: string;
  /** Null: nothing was charged, or storage is too slow to confirm it. */
  charge: Charge | null;
  responseTimeMs: number;
}
