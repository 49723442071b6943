import type { SqlOrTx, Tx } from '../database.ts';
import { type ChatKey, storable } from './chats.ts';
import { isOwnedBy, type LostOwner } from './nodes.ts';

export interface CompletionRow {
  id: string;
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** Chat that it continues or begins. */
  chatId: string | null;
  operation: 'chat' | 'correct';
  /** `abandoned`: the client left and paid for the output until then. */
  state: 'generating' | 'completed' | 'failed' | 'abandoned';
  /** Null if tokens are free. */
  holdId: string | null;
  unitPriceNano: bigint;
  model: string;
  promptTokens: number | null;
  completionTokens: number | null;
  error: string | null;
  ownerNode: string;
  ownerBoot: string;
  createdAt: Date;
  endedAt: Date | null;
}

export type NewCompletion = Omit<CompletionRow, 'state' | 'promptTokens' | 'completionTokens' | 'error' | 'endedAt'>;

/** Run it in the transaction that creates the hold. */
export async function insertCompletion(tx: Tx, completion: NewCompletion): Promise<void> {
  const row = { ...completion, model: storable(completion.model), state: 'generating' };
  await tx`insert into completions ${tx(row)}`;
}

export async function lockCompletion(tx: Tx, id: string): Promise<CompletionRow | null> {
  const [row] = await tx<CompletionRow[]>`select * from completions where id = ${id} for no key update`;
  return row ?? null;
}

export interface CompletionEnd {
  id: string;
  state: 'completed' | 'failed' | 'abandoned';
  model: string;
  /** Charged tokens. */
  promptTokens: number;
  completionTokens: number;
  error: string | null;
  now: Date;
}

export async function endCompletion(tx: Tx, { id, now, ...end }: CompletionEnd): Promise<void> {
  const changes = { ...end, model: storable(end.model), endedAt: now };
  await tx`update completions set ${tx(changes)} where id = ${id} and state = 'generating'`;
}

/** Whether an answer in the chat is in progress, stored or not. Older ones than `since` count as lost. */
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

/** Returns a lost owner's unfinished completions, oldest first. */
export async function lostCompletions(sql: SqlOrTx, lost: LostOwner): Promise<CompletionRow[]> {
  return await sql<CompletionRow[]>`
    select * from completions where ${isOwnedBy(sql, lost)} and state = 'generating'
    order by created_at, id`;
}
