import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RULES_MODEL } from '../../../language/correction/rules/correct-by-rules.ts';
import type { ChatMessage } from '../../../language/llm.ts';
import { TandemError } from '../../../machines/errors.ts';
import { deleteChat, findChat } from '../../../storage/queries/chats.ts';
import { eventually } from '../../eventually.ts';
import { modelOf } from '../../language/fake-language-models.ts';
import { seedWorkspace, USD } from '../../storage/seed.ts';
import {
  answerOf,
  type ChatDeskFixture,
  createChatDeskFixture,
  listening,
  partsOf,
  TOKEN_NANO,
} from './chat-desk-fixture.ts';

let fixture: ChatDeskFixture;
beforeAll(async () => {
  fixture = await createChatDeskFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => fixture.fund());

const lastMessages = () => fixture.models.requests.at(-1)!.messages;
const saidIn = async (chatId: string) => (await fixture.kept(chatId)).map(({ role, content }) => [role, content]);

describe('chat history', () => {
  it('starts with the first message, and precedes every later one', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('Hello Ada.', 'Ada.');
    const first = await answerOf(await desk.ask(fixture.request('  I am\nAda.  '), listening()));
    expect(first).toMatchObject({ isNewChat: true, chatId: expect.stringMatching(/^chat_/) });
    const chatId = first.chatId!;
    const second = await answerOf(await desk.ask(fixture.request('Who am I?', { chatId }), listening()));
    expect(second).toMatchObject({ isNewChat: false, chatId, text: 'Ada.' });
    expect(lastMessages()).toEqual([
      { role: 'user', content: '  I am\nAda.  ' },
      { role: 'assistant', content: 'Hello Ada.' },
      { role: 'user', content: 'Who am I?' },
    ]);
    expect(await fixture.kept(chatId)).toMatchObject([
      { position: 0, role: 'user', content: '  I am\nAda.  ', model: null },
      { position: 1, role: 'assistant', content: 'Hello Ada.', model: 'tiny-1.0' },
      { position: 2, role: 'user', content: 'Who am I?' },
      { position: 3, role: 'assistant', content: 'Ada.' },
    ]);
    const { workspaceId, userId } = fixture;
    const row = await findChat(fixture.database.sql, { id: chatId, workspaceId, userId });
    expect(row).toMatchObject({ title: 'I am Ada.', messageCount: 4 });
  });

  it('keeps tool calls with their results, and requires the results', async () => {
    const { desk } = fixture.deskOf();
    const toolCalls = [{ id: 'call_1', name: 'weather', arguments: '{"city":"Pune"}' }];
    fixture.models.queue({ toolCalls }, 'Sunny.', 'Still.');
    const tools = [{ name: 'weather', description: null, parameters: null }];
    const { chatId, parts, finished } = await answerOf(await desk.ask(fixture.request('Weather?'), listening()));
    expect(finished.reasons[0]).toBe('tool_calls');
    expect(parts.filter(({ type }) => type === 'toolCall')).toEqual([
      { type: 'toolCall', choice: 0, index: 0, id: 'call_1', name: 'weather', arguments: '{"city"' },
      { type: 'toolCall', choice: 0, index: 0, id: null, name: null, arguments: ':"Pune"}' },
    ]);
    const early = desk.ask(fixture.request('And now?', { chatId }), listening());
    await expect(early).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      details: [{ path: 'messages.0', message: expect.stringContaining('call_1') }],
    });
    const result: ChatMessage = { role: 'tool', content: '31 degrees', toolCallId: 'call_1' };
    await partsOf(await desk.ask(fixture.request([result], { chatId, what: { tools } }), listening()));
    expect(lastMessages()).toEqual([
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: null, toolCalls },
      result,
    ]);
    await partsOf(await desk.ask(fixture.request('And now?', { chatId }), listening()));
    expect(lastMessages()).toHaveLength(5);
    const orphan = desk.ask(fixture.request([result], { chatId }), listening());
    await expect(orphan).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  });

  it('assigns ids to tool calls with missing or duplicate ones', async () => {
    const { desk } = fixture.deskOf();
    const call = { id: 'same', name: 'f', arguments: '{}' };
    fixture.models.queue({ toolCalls: [call, call, { ...call, id: '' }] });
    const { chatId } = await answerOf(await desk.ask(fixture.request('Go.'), listening()));
    const ids = (await fixture.kept(chatId!)).at(-1)!.toolCalls!.map(({ id }) => id);
    expect(ids[0]).toBe('same');
    expect(new Set(ids).size).toBe(3);
    expect(ids.slice(1).every((id) => id.startsWith('call_'))).toBe(true);
  });

  it('drops the oldest turns beyond the context of the model', async () => {
    fixture.models.models = [modelOf('tiny-1.0', { contextTokens: 400 })];
    const { desk } = fixture.deskOf();
    let chatId: string | null = null;
    for (let index = 0; index < 12; index += 1) {
      fixture.models.queue('ok');
      ({ chatId } = await desk
        .ask(fixture.request(`${index} ${'x'.repeat(70)}`, { chatId }), listening())
        .then(answerOf));
    }
    const firsts = lastMessages().map(({ content }) => content!.split(' ')[0]);
    expect(firsts.slice(-3)).toEqual(['10', 'ok', '11']);
    // Half of the context is for the answer. In the other 200, turns take 27 and the new message 22.
    expect(firsts).toHaveLength(13);
    expect(await fixture.kept(chatId!)).toHaveLength(24);
  });

  it('allows one answer at a time, and frees the chat once the answer is stored', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('Hello.', { text: 'half', neverEnds: true }, 'Third.');
    const { chatId } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    const left = new AbortController();
    const { parts } = await desk.ask(fixture.request('Second', { chatId }), left.signal);
    await parts.next();
    const other = desk.ask(fixture.request('Third', { chatId }), listening());
    await expect(other).rejects.toMatchObject({ code: 'CHAT_BUSY', status: 409, retryable: true });
    left.abort();
    const third = await eventually(() => desk.ask(fixture.request('Third', { chatId }), listening()));
    await partsOf(third);
    // The text up to the cancellation is kept.
    expect(await saidIn(chatId!)).toEqual([
      ['user', 'First'],
      ['assistant', 'Hello.'],
      ['user', 'Second'],
      ['assistant', 'half'],
      ['user', 'Third'],
      ['assistant', 'Third.'],
    ]);
  });

  it('locks a new chat during its first answer, and hides it from other users', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: 'half', neverEnds: true });
    const left = new AbortController();
    const { chatId, parts } = await desk.ask(fixture.request('First'), left.signal);
    await parts.next();
    const second = desk.ask(fixture.request('Second', { chatId }), listening());
    await expect(second).rejects.toMatchObject({ code: 'CHAT_BUSY' });
    const { user } = await seedWorkspace(fixture.database.sql);
    const strangers = desk.ask(fixture.request('Second', { chatId, userId: user.id }), listening());
    await expect(strangers).rejects.toMatchObject({ code: 'CHAT_NOT_FOUND' });
    left.abort();
    await desk.close();
  });

  it('answers one of twenty simultaneous requests and rejects the others', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('Hello.');
    const { chatId } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    fixture.models.otherwise = () => ({ text: 'half', neverEnds: true });
    const left = new AbortController();
    const asked = await Promise.allSettled(
      Array.from({ length: 20 }, () => desk.ask(fixture.request('Second', { chatId }), left.signal)),
    );
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refusals = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    expect(new Set(refusals)).toEqual(new Set(['CHAT_BUSY']));
    left.abort();
    await desk.close();
  });

  it('belongs to one user in one workspace', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('Hello.');
    const { chatId } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    const { user } = await seedWorkspace(fixture.database.sql);
    for (const others of [
      { userId: user.id },
      { workspaceId: (await seedWorkspace(fixture.database.sql)).workspace.id },
    ]) {
      const asking = desk.ask(fixture.request('Second', { chatId, ...others }), listening());
      await expect(asking).rejects.toMatchObject({ code: 'CHAT_NOT_FOUND' });
    }
    const unknown = desk.ask(fixture.request('Second', { chatId: 'constructor' }), listening());
    await expect(unknown).rejects.toMatchObject({ code: 'CHAT_NOT_FOUND' });
  });

  it('keeps neither failed answers nor those with savesChat off', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('One.', 'Two.', { text: 'half', error: new TandemError('LLM_TIMEOUT', 'late') });
    const unkept = await answerOf(await desk.ask(fixture.request('First', { savesChat: false }), listening()));
    expect(unkept).toMatchObject({ chatId: null, isNewChat: false });
    const { chatId } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    const failing = await desk.ask(fixture.request('Second', { chatId }), listening());
    await expect(partsOf(failing)).rejects.toMatchObject({ code: 'LLM_TIMEOUT' });
    fixture.models.queue('Three.');
    await partsOf(await desk.ask(fixture.request('Aside', { chatId, savesChat: false }), listening()));
    expect(lastMessages()).toHaveLength(3);
    expect(await saidIn(chatId!)).toEqual([
      ['user', 'First'],
      ['assistant', 'Two.'],
    ]);
  });

  it('stays deleted when deleted during an answer, which is charged', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue('One.', { text: ['Two', '.'] });
    const { chatId } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    const { parts } = await desk.ask(fixture.request('Second', { chatId }), listening());
    await parts.next();
    const { workspaceId, userId } = fixture;
    expect(await deleteChat(fixture.database.sql, { id: chatId!, workspaceId, userId })).toBe(true);
    for await (const _ of parts);
    expect(await fixture.kept(chatId!)).toEqual([]);
    expect((await fixture.charged()).tokens).toBe(30);
  });

  it('stays deleted when deleted before its first answer, which is charged', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ text: ['One', '.'] });
    const { chatId, parts } = await desk.ask(fixture.request('First'), listening());
    await parts.next();
    const { workspaceId, userId } = fixture;
    const chat = { id: chatId!, workspaceId, userId };
    expect(await deleteChat(fixture.database.sql, chat)).toBe(true);
    for await (const _ of parts);
    expect(await findChat(fixture.database.sql, chat)).toBeNull();
    expect((await fixture.charged()).tokens).toBe(15);
  });

  it('keeps the first and the newest system messages when there are many', async () => {
    fixture.models.models = [modelOf('tiny-1.0', { contextTokens: 400 })];
    const { desk } = fixture.deskOf();
    let chatId: string | null = null;
    for (let minute = 0; minute < 20; minute += 1) {
      fixture.models.queue('ok');
      const messages: ChatMessage[] = [
        { role: 'system', content: `It is ${minute} past ${'x'.repeat(60)}.` },
        { role: 'user', content: `${minute}?` },
      ];
      ({ chatId } = await answerOf(await desk.ask(fixture.request(messages, { chatId }), listening())));
    }
    const sent = lastMessages().map(({ content }) => content!);
    // Each takes 22 of the 200 tokens that the answer leaves.
    expect(sent.filter((content) => content.startsWith('It is')).map((content) => content.split(' ')[2])).toEqual([
      ...['0', '17', '18', '19'],
    ]);
    expect(sent.slice(-3)).toEqual(['18?', 'ok', '19?']);
  });

  it('stores characters that Postgres rejects as the client received them', async () => {
    fixture.models.models = [modelOf('tiny\0-1.0')];
    const { desk } = fixture.deskOf();
    fixture.models.queue({
      text: ['a\0b', '\ud800'],
      toolCalls: [{ id: 'x\0', name: 'f\udfff', arguments: '{"a":"\0"}' }],
    });
    const { chatId, text, parts } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    expect(text).toBe('a\ufffdb\ufffd');
    const calling = parts.filter((part) => part.type === 'toolCall');
    const [{ id, name }] = calling as [(typeof calling)[0]];
    expect([id, name]).toEqual([expect.stringMatching(/^call_/), 'f\ufffd']);
    const written = calling.map((part) => part.arguments).join('');
    expect(written).toBe('{"a":"\ufffd"}');
    expect((await fixture.kept(chatId!))[1]).toMatchObject({
      content: text,
      toolCalls: [{ id, name, arguments: written }],
    });
  });

  it('joins characters that the model server split', async () => {
    const { desk } = fixture.deskOf();
    fixture.models.queue({ reasoning: 'so\ud83d', text: ['a\ud83d', '\ude00b\ud83d', '\ud83d\ude00', '\ude00'] });
    const { chatId, text, parts } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    expect(text).toBe('a😀b\ufffd😀\ufffd');
    const thought = parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
    expect(thought).toBe('so\ufffd');
    expect(parts.every((part) => part.type === 'finished' || JSON.stringify(part).isWellFormed())).toBe(true);
    expect((await fixture.kept(chatId!))[1]!.content).toBe(text);
  });

  it('drops a truncated tool call, which can have no result', async () => {
    const { desk } = fixture.deskOf();
    const toolCalls = [
      { id: 'whole', name: 'f', arguments: '{}' },
      { id: 'half', name: 'f', arguments: '{"city":"Pu' },
    ];
    fixture.models.queue({ toolCalls, finishReason: 'length' });
    const { chatId } = await answerOf(await desk.ask(fixture.request('First'), listening()));
    expect((await fixture.kept(chatId!))[1]!.toolCalls).toMatchObject([{ id: 'whole' }]);
  });
});

describe('correction of a text', () => {
  const STYLE = {
    tone: null,
    autoCapitalize: true,
    autoPunctuate: true,
    useContractions: null,
    expandAbbreviations: false,
  };
  const correction = (text: string) =>
    ({
      mode: 'correct',
      text,
      dictionary: [{ term: 'tandem', replacement: 'Tandem' }],
      style: STYLE,
      appContext: null,
    }) as const;

  it('follows rules without a model, and costs its tokens', async () => {
    fixture.models.models = [];
    const { desk } = fixture.deskOf();
    const request = fixture.request('', { what: correction('i think that tandem is not here yet') });
    const { text, finished, chatId, model } = await answerOf(await desk.ask(request, listening()));
    expect(text).toMatch(/^i think that Tandem is not here yet\.?$/i);
    expect([model, finished.model]).toEqual([RULES_MODEL, RULES_MODEL]);
    const { promptTokens, completionTokens } = finished.usage;
    expect(await fixture.charged()).toEqual({
      tokens: promptTokens + completionTokens,
      amountNano: BigInt(promptTokens + completionTokens) * TOKEN_NANO,
    });
    const [usage] = await fixture.database
      .sql`select service, operation from usage_logs where workspace_id = ${fixture.workspaceId}`;
    expect(usage).toEqual({ service: 'llm', operation: 'correct' });
    expect(await saidIn(chatId!)).toEqual([
      ['user', 'i think that tandem is not here yet'],
      ['assistant', text],
    ]);
  });

  it('costs the same inside a chat, and requires pending tool results', async () => {
    const { desk } = fixture.deskOf();
    const long = 'x'.repeat(4_000);
    fixture.models.queue(long);
    const { chatId } = await answerOf(await desk.ask(fixture.request(long), listening()));
    fixture.models.models = [];
    const request = fixture.request('', { what: correction('i think'), chatId });
    const left = new AbortController();
    const { parts } = await desk.ask(request, left.signal);
    left.abort();
    await partsOf({ parts }).catch(() => undefined);
    await eventually(async () => expect((await fixture.wallet()).heldNano).toBe(0n));
    const [row] = (await fixture.rows()).filter(({ operation }) => operation === 'correct');
    expect(row!.promptTokens).toBeLessThan(10);
    fixture.models.models = [modelOf('tiny-1.0')];
    fixture.models.queue({ toolCalls: [{ id: 'call_1', name: 'f', arguments: '{}' }] });
    await partsOf(await desk.ask(fixture.request('Go.', { chatId }), listening()));
    await expect(desk.ask(request, listening())).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  });

  it('fails for an unknown model', async () => {
    fixture.models.models = [];
    const { desk } = fixture.deskOf();
    const request = fixture.request('', { what: correction('i am'), model: 'gpt-9' });
    await expect(desk.ask(request, listening())).rejects.toMatchObject({ code: 'LLM_NOT_CONFIGURED' });
    expect(await fixture.wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
  });

  it('fails when the wallet covers only part of the text', async () => {
    fixture.models.models = [];
    await fixture.fund(100n * TOKEN_NANO);
    fixture.models.models = [];
    const { desk } = fixture.deskOf();
    const request = fixture.request('', { what: correction('word '.repeat(100)) });
    await expect(desk.ask(request, listening())).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
  });
});
