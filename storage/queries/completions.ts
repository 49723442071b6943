import type { SqlOrTx, Tx } from '../database.ts';
import { type ChatKey, storable } from './chats.ts';
import { isOwnedBy, type LostOwner } from './nodes.ts';

/** Something a language model was asked, and what came of it. */
export interface CompletionRow {
  id: string;
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** The chat it continues or begins. */
  chatId: string | null;
  operation: 'chat' | 'correct';
  /** `abandoned`: the client left of their own accord, and paid for what was produced by then. */
  state: 'generating' | 'completed' | 'failed' | 'abandoned';
  /** Null where tokens cost nothing. */
  holdId: string | null;
  unitPriceNano: bigint;
  model: string;
  promptTokens: number | null;
  completionTokens: number | null;
  /** A code, of one that failed. */
  error: string | null;
  ownerNode: string;
  ownerBoot: string;
  createdAt: Date;
  endedAt: Date | null;
}

export type NewCompletion = Omit<CompletionRow, 'state' | 'promptTokens' | 'completionTokens' | 'error' | 'endedAt'>;

/** Belongs into the transaction that holds what it may cost. */
export async function insertCompletion(tx: Tx, completion: NewCompletion): Promise<void> {
  const row = { ...completion, model: storable(completion.model), state: 'generating' };
  await tx`insert into completions ${tx(row)}`;
}

/** Locks it against another end. */
export async function lockCompletion(tx: Tx, id: string): Promise<CompletionRow | null> {
  const [row] = await tx<CompletionRow[]>`select * from completions where id = ${id} for no key update`;
  return row ?? null;
}

export interface CompletionEnd {
  id: string;
  state: 'completed' | 'failed' | 'abandoned';
  model: string;
  /** That are charged. */
  promptTokens: number;
  completionTokens: number;
  /** A code, when it failed. */
  error: string | null;
  now: Date;
}

export async function endCompletion(tx: Tx, { id, now, ...end }: CompletionEnd): Promise<void> {
  const changes = { ...end, model: storable(end.model), endedAt: now };
  await tx`update completions set ${tx(changes)} where id = ${id} and state = 'generating'`;
}

/**
 * Whether something is being said in the chat, which need not be stored yet. What began before `since` is taken for lost
 * with its process.
 */
export async function isChatAnswering(
  sql: SqlOrTx,
  { id, workspaceId, userId }: ChatKey,
  { since }: { since: Date },
): Promise<boolean> {
  const [row] = await sql`
    select 1 from completions where chat_id = ${id} and workspace_id = ${workspaceId} and user_id = ${userId}
      and state = 'generating' and created_at > ${since} limit 1`;
  return row !== undefined;
}

/** Those that a lost owner was generating, oldest first. */
export async function lostCompletions(sql: SqlOrTx, lost: LostOwner): Promise<CompletionRow[]> {
  return await sql<CompletionRow[]>`
    select * from completions where ${isOwnedBy(sql, lost)} and state = 'generating'
    order by created_at, id`;
}
