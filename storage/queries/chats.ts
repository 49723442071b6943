import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/** A conversation of one user in one workspace. */
export interface ChatRow {
  id: string;
  workspaceId: string;
  userId: number;
  /** The beginning of what was said first. */
  title: string;
  messageCount: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface ChatMessageRow {
  chatId: string;
  /** From 0. */
  position: number;
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** Null where the assistant only called tools. */
  content: string | null;
  toolCalls: readonly StoredToolCall[] | null;
  /** Whose result this is. */
  toolCallId: string | null;
  /** Who wrote it, of the assistant's. */
  model: string | null;
  /** Counted by us. */
  tokens: number;
  createdAt: Date;
}

export interface StoredToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** Nobody else's chats are there. */
export interface ChatKey {
  id: string;
  workspaceId: string;
  userId: number;
}

export async function findChat(
  sql: SqlOrTx,
  { id, workspaceId, userId }: ChatKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<ChatRow | null> {
  if (id !== storable(id)) return null;
  const [row] = await sql<ChatRow[]>`
    select * from chats where id = ${id} and workspace_id = ${workspaceId} and user_id = ${userId}
    ${lock ? sql`for no key update` : sql``}`;
  return row ?? null;
}

/** The one that was continued last comes first. */
export async function listChats(
  sql: SqlOrTx,
  { workspaceId, userId }: Omit<ChatKey, 'id'>,
  page: Page,
): Promise<PageOf<ChatRow>> {
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from chats where workspace_id = ${workspaceId} and user_id = ${userId}`;
  const rows = await sql<ChatRow[]>`
    select * from chats where workspace_id = ${workspaceId} and user_id = ${userId}
    order by updated_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  return { rows, total: count?.total ?? 0 };
}

/** In the order in which it was said. */
export async function listChatMessages(sql: SqlOrTx, chatId: string, page: Page): Promise<PageOf<ChatMessageRow>> {
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from chat_messages where chat_id = ${chatId}`;
  const rows = await sql<ChatMessageRow[]>`
    select * from chat_messages where chat_id = ${chatId}
    order by position limit ${page.limit} offset ${offsetOf(page)}`;
  return { rows, total: count?.total ?? 0 };
}

/**
 * Of the system's messages and of turns each the newest that come to so many tokens, in the order in which they were said.
 * A turn is what a user said and all that followed on it, and is there as a whole or not at all. The newest turn always
 * is, and so is what the system was told first.
 */
export async function recentChatMessages(
  sql: SqlOrTx,
  { chatId, tokens }: { chatId: string; tokens: number },
): Promise<ChatMessageRow[]> {
  return await sql<ChatMessageRow[]>`
    with numbered as (
      select *, count(*) filter (where role = 'user') over (order by position) as turn
      from chat_messages where chat_id = ${chatId}
    ), summed as (
      -- Rows of one turn are peers, so each has the sum of its whole turn and the newer ones.
      select *, sum(case when role = 'system' then 0 else tokens end) over (order by turn desc) as so_far,
        max(turn) over () as newest,
        sum(case when role = 'system' then tokens else 0 end) over (order by position desc) as told_so_far,
        min(position) filter (where role = 'system') over () as first_told
      from numbered
    )
    select chat_id, position, role, content, tool_calls, tool_call_id, model, tokens, created_at
    from summed
    where case when role = 'system' then told_so_far <= ${Math.max(0, tokens)} or position = first_told
      else so_far <= ${Math.max(0, tokens)} or turn = newest end
    order by position`;
}

/** With answers that are under way in it, which are not kept. False: there is no such chat, nor one that begins. */
export async function deleteChat(sql: SqlOrTx, { id, workspaceId, userId }: ChatKey): Promise<boolean> {
  if (id !== storable(id)) return false;
  return await inTransaction(sql, async (tx) => {
    // First: an answer that is being stored is waited for, and what it began is there for the next statement.
    const answering = await tx`
      update completions set chat_id = null where chat_id = ${id} and workspace_id = ${workspaceId}
        and user_id = ${userId} and state = 'generating' returning id`;
    const chats = await tx`
      delete from chats where id = ${id} and workspace_id = ${workspaceId} and user_id = ${userId} returning id`;
    return answering.length + chats.length > 0;
  });
}

export type NewChatMessage = Omit<ChatMessageRow, 'chatId' | 'position' | 'createdAt'>;

export interface ChatTurn {
  chat: ChatKey;
  /** Null: it continues a chat, and is dropped when that was deleted meanwhile. */
  title: string | null;
  messages: readonly NewChatMessage[];
  now: Date;
}

/** Appends what was said. Whoever calls it keeps others from doing so at the same time. */
export async function appendChatTurn(tx: Tx, { chat, title, messages, now }: ChatTurn): Promise<void> {
  if (title !== null) {
    await tx`insert into chats ${tx({ ...chat, title: storable(title), createdAt: now, updatedAt: now })}`;
  }
  const row = await findChat(tx, chat, { lock: true });
  if (row === null || messages.length === 0) return;
  const rows = messages.map(({ content, toolCalls, toolCallId, ...message }, index) => ({
    ...message,
    chatId: chat.id,
    position: row.messageCount + index,
    content: content === null ? null : storable(content),
    toolCalls: toolCalls === null ? null : tx.json(toolCalls.map(storableCall)),
    toolCallId: toolCallId === null ? null : storable(toolCallId),
    model: message.model === null ? null : storable(message.model),
    createdAt: now,
  }));
  await tx`insert into chat_messages ${tx(rows as never)}`;
  const messageCount = row.messageCount + rows.length;
  await tx`update chats set message_count = ${messageCount}, updated_at = ${now} where id = ${chat.id}`;
}

function storableCall({ id, name, arguments: given }: StoredToolCall) {
  return { id: storable(id), name: storable(name), arguments: storable(given) };
}

/** What models and their servers write may have what Postgres does not take: NUL, and halves of surrogate pairs. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

export function chatNotFound(): TandemError {
  return new TandemError(
    'CHAT_NOT_FOUND',
    'You have no chat with this id in this workspace. GET /chats lists your chats.',
  );
}
