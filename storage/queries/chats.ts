import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export interface ChatRow {
  id: string;
  workspaceId: string;
  userId: number;
  /** Start of the first message. */
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
  /** Null if the assistant only called tools. */
  content: string | null;
  toolCalls: readonly StoredToolCall[] | null;
  /** Tool call that this is the result of. */
  toolCallId: string | null;
  /** Model that wrote it; null unless it is the assistant's. */
  model: string | null;
  /** Our own count. */
  tokens: number;
  createdAt: Date;
}

export interface StoredToolCall {
  id: string;
  name: string;
  arguments: string;
}

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

/** Most recently continued first. */
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

/** In conversation order. */
export async function listChatMessages(sql: SqlOrTx, chatId: string, page: Page): Promise<PageOf<ChatMessageRow>> {
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from chat_messages where chat_id = ${chatId}`;
  const rows = await sql<ChatMessageRow[]>`
    select * from chat_messages where chat_id = ${chatId}
    order by position limit ${page.limit} offset ${offsetOf(page)}`;
  return { rows, total: count?.total ?? 0 };
}

/**
 * Returns the newest system messages and turns that fit into `tokens` each, in conversation order. A turn is a user
 * message and all that follows, and is never split. The newest turn and the first system message are always included.
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

/**
 * Deletes a chat. Answers in progress are not stored then. False: neither the chat nor a completion that would create
 * it exists.
 */
export async function deleteChat(sql: SqlOrTx, { id, workspaceId, userId }: ChatKey): Promise<boolean> {
  if (id !== storable(id)) return false;
  return await inTransaction(sql, async (tx) => {
    // Do this first: it waits for an answer that is being stored, so that the next statement sees its chat.
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
  /** Null: continue a chat; ignored if that was deleted meanwhile. */
  title: string | null;
  messages: readonly NewChatMessage[];
  now: Date;
}

/** Appends messages. The caller must prevent concurrent calls. */
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
  await tx`insert into chat_messages ${tx(rows)}`;
  const messageCount = row.messageCount + rows.length;
  await tx`update chats set message_count = ${messageCount}, updated_at = ${now} where id = ${chat.id}`;
}

function storableCall({ id, name, arguments: given }: StoredToolCall) {
  return { id: storable(id), name: storable(name), arguments: storable(given) };
}

/** Replaces NUL and lone surrogates in model output, which Postgres rejects. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

export function chatNotFound(): TandemError {
  return new TandemError(
    'CHAT_NOT_FOUND',
    'You have no chat with this id in this workspace. GET /chats lists your chats.',
  );
}
