import { expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { hold } from '../../storage/ledger.ts';
import {
  appendChatTurn,
  deleteChat,
  findChat,
  listChatMessages,
  listChats,
  type NewChatMessage,
  recentChatMessages,
} from '../../storage/queries/chats.ts';
import {
  endCompletion,
  insertCompletion,
  isChatAnswering,
  lockCompletion,
  lostCompletions,
} from '../../storage/queries/completions.ts';
import { onEveryServer } from './every-server.ts';
import { later, NOW, seedWorkspace } from './seed.ts';
import type { TestDatabase } from './test-database.ts';

const PAGE = { page: 1, limit: 10 };

function message(role: NewChatMessage['role'], content: string, tokens = 10): NewChatMessage {
  const toolCallId = role === 'tool' ? 'call_1' : null;
  return { role, content, tokens, toolCallId, toolCalls: null, model: null };
}

async function chatOf({ sql }: TestDatabase, messages: readonly NewChatMessage[], id = 'chat_1') {
  const { workspace, user } = await seedWorkspace(sql);
  const chat = { id, workspaceId: workspace.id, userId: user.id };
  await inTransaction(sql, (tx) => appendChatTurn(tx, { chat, title: 'Title', messages, now: NOW }));
  return chat;
}

onEveryServer('chats', (database) => {
  it('keep messages in order and list the last active chat first', async () => {
    const { sql } = database();
    const chat = await chatOf(database(), [message('user', 'a'), message('assistant', 'b')]);
    const other = { ...chat, id: 'chat_2' };
    const turn = { title: 'Other', messages: [message('user', 'c')], now: later(1_000) };
    await inTransaction(sql, (tx) => appendChatTurn(tx, { chat: other, ...turn }));
    const more = { title: null, messages: [message('user', 'd')], now: later(2_000) };
    await inTransaction(sql, (tx) => appendChatTurn(tx, { chat, ...more }));
    const { rows, total } = await listChats(sql, chat, PAGE);
    expect(rows.map(({ id, title, messageCount }) => [id, title, messageCount])).toEqual([
      ['chat_1', 'Title', 3],
      ['chat_2', 'Other', 1],
    ]);
    expect(total).toBe(2);
    const said = await listChatMessages(sql, chat.id, { page: 2, limit: 2 });
    expect(said).toMatchObject({ rows: [{ position: 2, content: 'd' }], total: 3 });
    expect(await listChats(sql, chat, { page: 2, limit: 1 })).toMatchObject({ rows: [{ id: 'chat_2' }], total: 2 });
  });

  it('belong to one user in one workspace, and disappear with their messages', async () => {
    const { sql } = database();
    const chat = await chatOf(database(), [message('user', 'a')]);
    const stranger = await seedWorkspace(sql);
    for (const owner of [{ userId: stranger.user.id }, { workspaceId: stranger.workspace.id }]) {
      expect(await findChat(sql, { ...chat, ...owner })).toBeNull();
      expect(await deleteChat(sql, { ...chat, ...owner })).toBe(false);
    }
    expect(await findChat(sql, { ...chat, id: 'chat\0' })).toBeNull();
    expect(await deleteChat(sql, { ...chat, id: 'chat\ud800' })).toBe(false);
    expect(await deleteChat(sql, chat)).toBe(true);
    expect(await deleteChat(sql, chat)).toBe(false);
    expect((await listChatMessages(sql, chat.id, PAGE)).total).toBe(0);
    // Late messages are dropped.
    const turn = { title: null, messages: [message('user', 'late')], now: NOW };
    await inTransaction(sql, (tx) => appendChatTurn(tx, { chat, ...turn }));
    expect((await listChatMessages(sql, chat.id, PAGE)).total).toBe(0);
  });

  it.each([
    [0, ['s', '3', '3a', '3b']],
    [9, ['s', '3', '3a', '3b']],
    [10, ['s', 't', '3', '3a', '3b']],
    [29, ['s', 't', '3', '3a', '3b']],
    [30, ['s', 't', '3', '3a', '3b']],
    [49, ['s', 't', '3', '3a', '3b']],
    [50, ['s', '2', 't', '2a', '3', '3a', '3b']],
    [69, ['s', '2', 't', '2a', '3', '3a', '3b']],
    [70, ['s', '1', '1a', '2', 't', '2a', '3', '3a', '3b']],
    [79, ['s', '1', '1a', '2', 't', '2a', '3', '3a', '3b']],
    [80, ['s', '0', '1', '1a', '2', 't', '2a', '3', '3a', '3b']],
  ])(
    'return whole turns up to %i tokens, always the newest, and as much of the system message as fits',
    async (tokens, expected) => {
      const said = ['s', '0', '1', '1a', '2', 't', '2a', '3', '3a', '3b'].map((content) => {
        if (content === 's' || content === 't') return message('system', content);
        // Messages of the assistant before the first user message form their own turn.
        if (content === '0') return message('assistant', content);
        if (content === '3a') return message('tool', content);
        return message(content.length === 1 ? 'user' : 'assistant', content);
      });
      const chat = await chatOf(database(), said);
      const rows = await recentChatMessages(database().sql, { chatId: chat.id, tokens });
      expect(rows.map(({ content }) => content)).toEqual(expected);
    },
  );

  it('can be deleted before their first answer, by their user only', async () => {
    const { sql } = database();
    const { workspace, user } = await seedWorkspace(sql);
    const stranger = await seedWorkspace(sql);
    const owner = { workspaceId: workspace.id, userId: user.id };
    const what = { operation: 'chat', model: 'tiny-1.0', holdId: null, unitPriceNano: 0n, apiKeyId: null } as const;
    const row = { ...owner, ...what, id: 'new', chatId: 'chat_new', ownerNode: 'n', ownerBoot: 'b', createdAt: NOW };
    await inTransaction(sql, (tx) => insertCompletion(tx, row));
    const chat = { ...owner, id: 'chat_new' };
    expect(await deleteChat(sql, { ...chat, workspaceId: stranger.workspace.id })).toBe(false);
    expect(await deleteChat(sql, { ...chat, userId: stranger.user.id })).toBe(false);
    expect(await deleteChat(sql, chat)).toBe(true);
    expect(await inTransaction(sql, (tx) => lockCompletion(tx, 'new'))).toMatchObject({ chatId: null });
    expect(await deleteChat(sql, chat)).toBe(false);
  });
});

onEveryServer('completions', (database) => {
  it('can be found by their user and end once', async () => {
    const { sql } = database();
    const { workspace, user } = await seedWorkspace(sql);
    const owner = { workspaceId: workspace.id, userId: user.id, apiKeyId: null };
    const what = { chatId: 'chat_1', operation: 'chat', model: 'tiny-1.0', unitPriceNano: 20_000n } as const;
    const { holdId } = await hold(sql, { ...owner, amountNano: 5n, minimumNano: 0n, operationKey: 'h' });
    const row = { ...owner, ...what, holdId, ownerNode: 'n', createdAt: NOW };
    await inTransaction(sql, async (tx) => {
      await insertCompletion(tx, { ...row, id: 'lost', ownerBoot: 'b-1' });
      await insertCompletion(tx, { ...row, id: 'alive', ownerBoot: 'b-2', chatId: null });
      await insertCompletion(tx, { ...row, id: 'elsewhere', ownerBoot: 'b-1', ownerNode: 'm', chatId: null });
    });
    const lost = () => lostCompletions(sql, { node: 'n', exceptBoot: 'b-2' });
    expect((await lost()).map(({ id }) => id)).toEqual(['lost']);
    const isBusy = (since: Date) => isChatAnswering(sql, { ...owner, id: 'chat_1' }, { since });
    expect([await isBusy(later(-1)), await isBusy(NOW)]).toEqual([true, false]);
    const tokens = { promptTokens: 1, completionTokens: 2 };
    const end = { id: 'lost', model: 'tiny-1.0', error: null, ...tokens, now: later(5) } as const;
    await inTransaction(sql, (tx) => endCompletion(tx, { ...end, state: 'completed' }));
    await inTransaction(sql, (tx) => endCompletion(tx, { ...end, state: 'abandoned' }));
    expect(await lost()).toEqual([]);
    expect(await isBusy(later(-1))).toBe(false);
    await inTransaction(sql, async (tx) => {
      expect(await lockCompletion(tx, 'lost')).toMatchObject({ state: 'completed', ...tokens, endedAt: later(5) });
      expect(await lockCompletion(tx, 'nobody')).toBeNull();
    });
  });
});
