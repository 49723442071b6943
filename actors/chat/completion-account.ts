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

/** Taken for the context of a model of which nobody says how long it is. */
const ASSUMED_CONTEXT_TOKENS = 16_384;
/** What an answer may come to where the caller does not say. */
const USUAL_ANSWER_TOKENS = 4_096;
/** Fewer than so many tokens are no answer worth its prompt. */
const LEAST_ANSWER_TOKENS = 16;
/** So much longer, in per cent, may a model count a prompt than we do, before the answer pays for it. */
const PROMPT_MARGIN = 10;
/** Longer than that nothing is generated: see `GENERATION_LIMIT_MS` of the actor, and some for storing it. */
const ANSWERING_FOR_MS = 15 * 60_000;

export interface Opening {
  row: Omit<NewCompletion, 'holdId' | 'unitPriceNano'>;
  /** That goes on; null where nothing goes in front. */
  chat: ChatKey | null;
  /** Null: nothing of the chat goes in front of what is asked. */
  fresh: readonly CountedMessage[] | null;
  /** Of what is sent beside the messages. */
  extraTokens: number;
  contextTokens: number | null;
  /** Of one answer. Null: the usual. */
  maxTokens: number | null;
  /** Number of answers. */
  choices: number;
  /** Below that it is refused. Default `LEAST_ANSWER_TOKENS`. */
  leastTokens?: number;
}

export interface Admission {
  /** For the model. */
  messages: ChatMessage[];
  /** What the chat does not have yet. */
  unsaved: CountedMessage[];
  /** As we count them. */
  promptTokens: number;
  /** What the model is told of one answer; null: nothing, as nobody knows whether that much fits into its context. */
  maxTokens: number | null;
  /** What the hold covers of each answer, as we count it. */
  mostTokens: number;
}

/**
 * Puts what was said before in front, sets aside what the answer may cost, or as much as there is, and stores that it is
 * generated; all or nothing. One at a time in a chat.
 * @throws TandemError `CHAT_NOT_FOUND`, `CHAT_BUSY`, `VALIDATION_FAILED`, `INSUFFICIENT_CREDITS`
 */
export async function openCompletion(sql: Sql, opening: Opening): Promise<Admission> {
  const { row, fresh, extraTokens, contextTokens, choices, leastTokens = LEAST_ANSWER_TOKENS } = opening;
  const { id, workspaceId, createdAt: now } = row;
  return await inTransaction(sql, async (tx) => {
    const { availableNano } = walletFrom(await lockAccounts(tx, workspaceId));
    const context = contextTokens ?? ASSUMED_CONTEXT_TOKENS;
    const reserved = Math.min(opening.maxTokens ?? USUAL_ANSWER_TOKENS, Math.floor(context / 2));
    const budgetTokens = context - reserved - extraTokens;
    const stored = opening.chat === null ? [] : await continuedChat(tx, opening.chat, { budgetTokens, now });
    const { messages: counted, unsaved } = conversationOf({ stored, fresh: fresh ?? [], budgetTokens });
    const messages = counted.map(({ message }) => message);
    requireAnsweredCalls(messages, { freshCount: fresh?.length ?? 0 });
    const promptTokens = (fresh === null ? 0 : tokensOf(counted)) + extraTokens;
    const room = contextTokens === null ? Number.POSITIVE_INFINITY : contextTokens - withMargin(promptTokens);
    // More than there is room for would be refused, or keep money back for nothing.
    const wanted = opening.maxTokens ?? USUAL_ANSWER_TOKENS;
    const maxTokens = Math.min(wanted, Math.max(LEAST_ANSWER_TOKENS, room));
    const told = contextTokens === null ? opening.maxTokens : maxTokens;
    const admission = { messages, unsaved, promptTokens, maxTokens: told, mostTokens: Number.POSITIVE_INFINITY };
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
    return { ...admission, maxTokens: mostTokens < maxTokens ? mostTokens : told, mostTokens };
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
  /** A code, when it failed. */
  error: string | null;
  /** Null: nothing is kept of it. */
  turn: Omit<ChatTurn, 'now'> | null;
}

/**
 * Stores how a completion ended, with what is charged for it and what the chat keeps, all or nothing. Changes nothing
 * when it was stored before, or when the completion never was. Returns what was charged.
 */
export async function closeCompletion(
  sql: SqlOrTx,
  { id, workspaceId }: Pick<CompletionRow, 'id' | 'workspaceId'>,
  { ending, now }: { ending: CompletionEnding; now: Date },
): Promise<Charge | null> {
  return await inTransaction(sql, async (tx) => {
    // Of a hold whose answer was lost, the transaction may still run: it has this lock to its end.
    await lockAccounts(tx, workspaceId);
    const row = await lockCompletion(tx, id);
    if (row?.state === 'generating') {
      const { state, model, usage, error } = ending;
      const { promptTokens = 0, completionTokens = 0 } = usage ?? {};
      await endCompletion(tx, { id, state, model, error, promptTokens, completionTokens, now });
      await settle(tx, { row, usage, now });
      // Without its chat it was deleted with that.
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
