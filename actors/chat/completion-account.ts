import type { ChatMessage, TokenUsage } from '../../language/llm.ts';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type Sql, type SqlOrTx, type Tx } from '../../storage/database.ts';
import { type Charge, chargeOf, hold, insufficientCredits, settleHold, voidHold } from '../../storage/ledger.ts';
import { lockAccounts, walletFrom } from '../../storage/ledger-entries.ts';
import { costAt, priceBookOf } from '../../storage/price-book.ts';
import {
  appendChatTurn,
  type ChatKey,
  type ChatMessageRow,
  type ChatTurn,
  chatNotFound,
  findChat,
  recentChatMessages,
} from '../../storage/queries/chats.ts';
import {
  type CompletionRow,
  endCompletion,
  insertCompletion,
  isChatAnswering,
  lockCompletion,
  type NewCompletion,
} from '../../storage/queries/completions.ts';
import { type CountedMessage, conversationOf, requireAnsweredCalls, tokensOf } from './conversation.ts';

/** Assumed for models of unknown context length. */
const ASSUMED_CONTEXT_TOKENS = 16_384;
/** Answer limit if the client gives none. */
const DEFAULT_ANSWER_TOKENS = 4_096;
/** A shorter answer is not worth its prompt. */
const LEAST_ANSWER_TOKENS = 16;
/** Margin in per cent for a model's own count of the prompt, before it reduces the answer. */
const PROMPT_MARGIN = 10;
/** Generation never takes longer: `GENERATION_LIMIT_MS` of the actor, and time to store the result. */
const ANSWERING_FOR_MS = 15 * 60_000;

export interface Opening {
  row: Omit<NewCompletion, 'holdId' | 'unitPriceNano'>;
  /** Chat to continue; null: no earlier messages. */
  chat: ChatKey | null;
  /** New messages. Null: a correction, whose prompt is in `extraTokens`. */
  fresh: readonly CountedMessage[] | null;
  /** Tokens besides the messages. */
  extraTokens: number;
  contextTokens: number | null;
  /** Limit per answer. Null: the default. */
  maxTokens: number | null;
  choices: number;
  /** Reject below this. Default `LEAST_ANSWER_TOKENS`. */
  leastTokens?: number;
}

export interface Admission {
  /** For the model. */
  messages: ChatMessage[];
  unsaved: CountedMessage[];
  /** Our own count. */
  promptTokens: number;
  /** Limit per answer for the model; null: none, because its context length is unknown. */
  maxTokens: number | null;
  /** Tokens per answer that the hold covers, by our count. */
  mostTokens: number;
}

/**
 * Prepends the chat's messages, holds up to the maximum price and stores the completion, in one transaction. Allows one
 * completion at a time per chat.
 * @throws TandemError `CHAT_NOT_FOUND`, `CHAT_BUSY`, `VALIDATION_FAILED`, `INSUFFICIENT_CREDITS`
 */
export async function openCompletion(sql: Sql, opening: Opening): Promise<Admission> {
  const { row, fresh, extraTokens, contextTokens, choices, leastTokens = LEAST_ANSWER_TOKENS } = opening;
  const { id, workspaceId, createdAt: now } = row;
  return await inTransaction(sql, async (tx) => {
    const { availableNano } = walletFrom(await lockAccounts(tx, workspaceId));
    const context = contextTokens ?? ASSUMED_CONTEXT_TOKENS;
    const reserved = Math.min(opening.maxTokens ?? DEFAULT_ANSWER_TOKENS, Math.floor(context / 2));
    const budgetTokens = context - reserved - extraTokens;
    const stored = opening.chat === null ? [] : await continuedChat(tx, opening.chat, { budgetTokens, now });
    const { messages: counted, unsaved } = conversationOf({ stored, fresh: fresh ?? [], budgetTokens });
    const messages = counted.map(({ message }) => message);
    requireAnsweredCalls(messages, { freshCount: fresh?.length ?? 0 });
    const promptTokens = (fresh === null ? 0 : tokensOf(counted)) + extraTokens;
    const room = contextTokens === null ? Number.POSITIVE_INFINITY : contextTokens - withMargin(promptTokens);
    // A larger limit would be rejected by the model, or hold money for nothing.
    const wanted = opening.maxTokens ?? DEFAULT_ANSWER_TOKENS;
    const maxTokens = Math.min(wanted, Math.max(LEAST_ANSWER_TOKENS, room));
    const modelLimit = contextTokens === null ? opening.maxTokens : maxTokens;
    const admission = { messages, unsaved, promptTokens, maxTokens: modelLimit, mostTokens: Number.POSITIVE_INFINITY };
    const { llm: unitPriceNano } = await priceBookOf(tx, workspaceId);
    if (unitPriceNano === 0n) {
      await insertCompletion(tx, { ...row, holdId: null, unitPriceNano });
      return admission;
    }
    const minimumNano = BigInt(promptTokens + choices * Math.min(leastTokens, maxTokens)) * unitPriceNano;
    if (availableNano < minimumNano) throw insufficientCredits(minimumNano, availableNano);
    const amountNano = BigInt(withMargin(promptTokens) + choices * maxTokens) * unitPriceNano;
    const operation = { workspaceId, operationKey: `llm:${id}:hold`, at: now };
    const held = await hold(tx, { ...operation, amountNano, minimumNano });
    await insertCompletion(tx, { ...row, holdId: held.holdId, unitPriceNano });
    const covered = Number(held.amountNano / unitPriceNano) - promptTokens;
    const mostTokens = Math.floor(covered / choices);
    return { ...admission, maxTokens: mostTokens < maxTokens ? mostTokens : modelLimit, mostTokens };
  });
}

async function continuedChat(
  tx: Tx,
  key: ChatKey,
  { budgetTokens, now }: { budgetTokens: number; now: Date },
): Promise<CountedMessage[]> {
  const chat = await findChat(tx, key, { lock: true });
  const since = new Date(now.getTime() - ANSWERING_FOR_MS);
  if (await isChatAnswering(tx, key, { since })) {
    const message = 'The chat is being answered already. Wait for that answer, or close its connection.';
    throw new TandemError('CHAT_BUSY', message);
  }
  if (chat === null) throw chatNotFound();
  const rows = await recentChatMessages(tx, { chatId: key.id, tokens: budgetTokens });
  return rows.map((row) => ({ message: messageOf(row), tokens: row.tokens }));
}

function messageOf({ role, content, toolCalls, toolCallId }: ChatMessageRow): ChatMessage {
  if (role === 'tool') return { role, content: content ?? '', toolCallId: toolCallId ?? '' };
  if (role !== 'assistant') return { role, content: content ?? '' };
  return { role, content, ...(toolCalls !== null && { toolCalls }) };
}

function withMargin(promptTokens: number): number {
  return Math.ceil((promptTokens * (100 + PROMPT_MARGIN)) / 100) + LEAST_ANSWER_TOKENS;
}

export interface CompletionEnding {
  state: 'completed' | 'failed' | 'abandoned';
  model: string;
  /** Null: nothing is owed. */
  usage: Pick<TokenUsage, 'promptTokens' | 'completionTokens'> | null;
  error: string | null;
  /** Null: not stored in a chat. */
  turn: Omit<ChatTurn, 'now'> | null;
}

/**
 * Stores the end of a completion with its charge and its chat messages, in one transaction. Changes nothing if the end
 * is already stored or the completion never was. Returns the charge.
 */
export async function closeCompletion(
  sql: SqlOrTx,
  { id, workspaceId }: Pick<CompletionRow, 'id' | 'workspaceId'>,
  { ending, now }: { ending: CompletionEnding; now: Date },
): Promise<Charge | null> {
  return await inTransaction(sql, async (tx) => {
    // If the response to a hold was lost, its transaction may still be running; it holds this lock until its end.
    await lockAccounts(tx, workspaceId);
    const row = await lockCompletion(tx, id);
    if (row?.state === 'generating') {
      const { state, model, usage, error } = ending;
      const { promptTokens = 0, completionTokens = 0 } = usage ?? {};
      await endCompletion(tx, { id, state, model, error, promptTokens, completionTokens, now });
      await settle(tx, { row, usage, now });
      // A completion without its chat was deleted with it.
      if (ending.turn !== null && row.chatId !== null) await appendChatTurn(tx, { ...ending.turn, now });
    }
    return await chargeOf(tx, settleKey(id));
  });
}

async function settle(
  tx: Tx,
  { row, usage, now: at }: { row: CompletionRow; usage: CompletionEnding['usage']; now: Date },
): Promise<void> {
  const { id, holdId, unitPriceNano, operation, apiKeyId, userId } = row;
  if (holdId === null) return;
  const count = usage === null ? 0 : usage.promptTokens + usage.completionTokens;
  const { amountNano, ...cost } = costAt({ service: 'llm', count, unitPriceNano });
  if (amountNano === 0n) {
    await voidHold(tx, { holdId, operationKey: `llm:${id}:void`, at });
    return;
  }
  await settleHold(tx, {
    ...{ holdId, amountNano, operationKey: settleKey(id), at },
    usage: { ...cost, operation, resourceId: id, apiKeyId, userId },
  });
}

function settleKey(completionId: string): string {
  return `llm:${completionId}:settle`;
}
