import { connect } from 'node:net';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createChatDesk } from '../../actors/chat/chat-desk.actor.ts';
import type { ChatDesk } from '../../actors/chat/chat-desk.ts';
import { createTextCorrection } from '../../language/correction/correct-text.ts';
import type { LanguageModels } from '../../language/llm.ts';
import { openLanguageModels } from '../../language/open-language-models.ts';
import { countTokens } from '../../language/tokens.ts';
import { systemClock } from '../../runtime/clock.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createTestLogger } from '../actors/fakes.ts';
import { eventually } from '../eventually.ts';
import { type ModelServer, startModelServer } from '../language/model-server.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

/** The official OpenAI client, a real engine and a fake model server. */

const USD = 1_000_000_000n;
const TOKEN_NANO = 20_000n;
const HEARTBEAT_MS = 25;
const PATIENCE_MS = 400;

let upstream: ModelServer;
let models: LanguageModels;
let desk: ChatDesk;
let fixture: HttpFixture;
let owner: Member;
let url: string;
let client: OpenAI;

beforeAll(async () => {
  fixture = await createHttpFixture({
    chat: { ask: (...asked) => desk.ask(...asked), close: () => desk.close() },
    models: { list: () => models.list(), aliases: () => models.aliases() } as LanguageModels,
    heartbeatMs: HEARTBEAT_MS,
    stallTimeoutMs: PATIENCE_MS,
    rateLimits: { concurrency: { llm: 2 } },
  });
  url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

beforeEach(async () => {
  upstream = await startModelServer();
  const model = { llmApiKey: null, llmModel: 'tiny-1.0', llmModelPath: null, llmAliases: new Map(), llmConcurrency: 4 };
  models = await openLanguageModels({ llmBaseUrl: upstream.baseUrl, ...model }, { clock: systemClock });
  const correction = createTextCorrection({ models, countTokens });
  const parts = { sql: fixture.sql, models, correction, countTokens, clock: systemClock, logger: createTestLogger() };
  desk = createChatDesk({ ...parts, node: 'node-1', boot: 'boot-1' });
  owner = await fixture.addWorkspace();
  const { workspaceId } = owner;
  const money = { amountNano: USD, paymentType: 'one_time', operationKey: `fund:${workspaceId}` } as const;
  await topUp(fixture.sql, { workspaceId, ...money });
  client = clientOf(owner);
});
afterEach(async () => {
  await desk.close();
  await models.close();
  await upstream[Symbol.asyncDispose]();
});

function clientOf({ key }: Member): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
}

const HELLO = { model: 'svc-tiny', messages: [{ role: 'user' as const, content: 'Hello.' }] };
const wallet = () => walletOf(fixture.sql, owner.workspaceId);
const rowOf = async (id: string) => (await fixture.sql`select * from completions where id = ${id}`)[0];
const chats = () => upstream.asked('/chat/completions');

/** For effects after the response, such as a disconnecting client. */

describe('OpenAI client', () => {
  it('receives a JSON answer and its cost', async () => {
    upstream.chat({ text: 'Hello Ada.', usage: { prompt_tokens: 9, completion_tokens: 3 } });
    const { data, response } = await client.chat.completions.create({ ...HELLO, stream: false }).withResponse();
    expect(data.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'Hello Ada.' },
    });
    expect(data).toMatchObject({ object: 'chat.completion', model: 'tiny-1.0', usage: { total_tokens: 12 } });
    expect(response.headers.get('x-credit-charged')).toBe('0.00024');
    expect(await wallet()).toMatchObject({ balanceNano: USD - 12n * TOKEN_NANO, heldNano: 0n });
    expect(chats()[0]!.body).toMatchObject({ model: 'tiny-1.0', messages: HELLO.messages });
  });

  it('receives JSON by default because it accepts JSON', async () => {
    upstream.chat({ text: 'Hello.' });
    expect((await client.chat.completions.create(HELLO)).choices[0]!.message.content).toBe('Hello.');
  });

  it('reads a stream, its usage, and the id of the new chat', async () => {
    upstream.chat({ text: ['He', 'llo ', '😀'], usage: { prompt_tokens: 9, completion_tokens: 3 } });
    const stream = await client.chat.completions.create({
      ...HELLO,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Hello 😀');
    expect(chunks.every(({ id, object }) => id === chunks[0]!.id && object === 'chat.completion.chunk')).toBe(true);
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    expect(chunks.at(-2)?.usage).toEqual({ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 });
    const { chat_id: chatId } = chunks[0] as OpenAI.ChatCompletionChunk & { chat_id: string };
    upstream.chat({ text: 'Again.' });
    await client.chat.completions.create({ ...HELLO, chat_id: chatId } as typeof HELLO);
    expect(chats()[1]!.body.messages).toEqual([
      ...HELLO.messages,
      { role: 'assistant', content: 'Hello 😀' },
      ...HELLO.messages,
    ]);
  });

  it('gets several choices, as JSON and as a stream', async () => {
    const turns = ['One.', 'Two.', 'Three.'].map((text) => ({
      text,
      usage: { prompt_tokens: 9, completion_tokens: 3 },
    }));
    upstream.chat(...turns, ...turns);
    const { choices, usage } = await client.chat.completions.create({ ...HELLO, n: 3 });
    expect(choices.map(({ index, finish_reason }) => [index, finish_reason])).toEqual(
      [0, 1, 2].map((i) => [i, 'stop']),
    );
    expect(choices.map(({ message }) => message.content).toSorted()).toEqual(['One.', 'Three.', 'Two.']);
    expect(usage).toEqual({ prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 });
    expect(await wallet()).toMatchObject({ balanceNano: USD - 18n * TOKEN_NANO, heldNano: 0n });
    const stream = await client.chat.completions.create({ ...HELLO, n: 3, stream: true });
    const texts = ['', '', ''];
    const ended: number[] = [];
    for await (const { choices } of stream) {
      for (const { index, delta, finish_reason } of choices) {
        texts[index] += delta.content ?? '';
        if (finish_reason !== null) ended.push(index);
      }
    }
    expect([texts.toSorted(), ended]).toEqual([
      ['One.', 'Three.', 'Two.'],
      [0, 1, 2],
    ]);
  });

  const LIKELY = { token: 'Yes', logprob: -0.1, bytes: [89, 101, 115] };
  const LOGPROBS = [
    { ...LIKELY, top_logprobs: [LIKELY, { token: 'No', logprob: -2.5, bytes: null }] },
    { token: '.', logprob: -0.01, bytes: [46], top_logprobs: [] },
  ];

  it('receives log probabilities, as JSON and in a stream', async () => {
    const asked = { ...HELLO, logprobs: true, top_logprobs: 2 };
    const turn = { text: ['Yes', '.'], logprobs: LOGPROBS.map((token) => [token]) };
    upstream.chat(turn, turn);
    const whole = await client.chat.completions.create({ ...asked, stream: false });
    expect(whole.choices[0]!.logprobs).toEqual({ content: LOGPROBS, refusal: null });
    expect(chats()[0]!.body).toMatchObject({ logprobs: true, top_logprobs: 2 });
    const streamed = await client.chat.completions.stream(asked).finalChatCompletion();
    expect(streamed.choices[0]!.logprobs).toEqual({ content: LOGPROBS, refusal: null });
    expect(streamed.choices[0]!.message.content).toBe('Yes.');
  });

  it('receives null for log probabilities that the model server refuses or returns malformed', async () => {
    const asked = { ...HELLO, logprobs: true, stream: false as const };
    upstream.refused.add('logprobs');
    upstream.chat(
      {},
      { text: 'Yes.' },
      { text: 'No.', logprobs: [['?', { token: 7 }, { token: 'a', logprob: 'b' }, null]] },
    );
    expect((await client.chat.completions.create(asked)).choices[0]!.logprobs).toBeNull();
    expect(chats().at(-1)!.body).not.toHaveProperty('top_logprobs');
    upstream.refused.clear();
    expect((await client.chat.completions.create(asked)).choices[0]!.logprobs).toBeNull();
  });

  it('receives one tool call if it disables parallel calls, even from a server that returns two', async () => {
    const tools = [{ type: 'function' as const, function: { name: 'f', parameters: {} } }];
    const calls = ['a', 'b'].map((id) => ({ id, name: 'f', arguments: '{}' }));
    upstream.chat({ toolCalls: calls }, { toolCalls: calls });
    const both = await client.chat.completions.create({ ...HELLO, tools });
    expect(both.choices[0]!.message.tool_calls?.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(chats()[0]!.body).not.toHaveProperty('parallel_tool_calls');
    const one = await client.chat.completions.create({ ...HELLO, tools, parallel_tool_calls: false });
    expect(one.choices[0]!.message.tool_calls?.map(({ id }) => id)).toEqual(['a']);
    expect(chats()[1]!.body).toMatchObject({ parallel_tool_calls: false });
  });

  it('accumulates a stream with its own helper', async () => {
    upstream.chat({ text: ['one ', 'two'] });
    const stream = client.chat.completions.stream(HELLO);
    const seen: string[] = [];
    stream.on('content', (delta) => void seen.push(delta));
    expect(await stream.finalContent()).toBe('one two');
    expect(seen).toEqual(['one ', 'two']);
    expect((await stream.finalChatCompletion()).choices[0]!.finish_reason).toBe('stop');
  });

  it('can send parsed answers back as messages', async () => {
    const format = { name: 'answer', strict: true, schema: { type: 'object', properties: { a: { type: 'number' } } } };
    const asked = { ...HELLO, response_format: { type: 'json_schema' as const, json_schema: format } };
    // Models also call unknown tools.
    upstream.chat(
      ...[
        { text: '{"a":1}' },
        { toolCalls: [{ id: 'call_8', name: 'weather.of', arguments: '{}' }] },
        { text: 'Fine.' },
      ],
    );
    const { message: parsed } = (await client.chat.completions.parse(asked)).choices[0]!;
    expect(parsed.parsed).toEqual({ a: 1 });
    const messages = [...HELLO.messages, parsed, ...HELLO.messages];
    const tools = [{ type: 'function' as const, function: { name: 'weather_of', parameters: {}, strict: true } }];
    const streamed = client.chat.completions.stream({ ...HELLO, messages, tools });
    const { message: calling } = (await streamed.finalChatCompletion()).choices[0]!;
    const result = { role: 'tool' as const, tool_call_id: 'call_8', content: 'There is no such tool.' };
    const last = await client.chat.completions.create({ ...HELLO, messages: [...messages, calling, result] });
    expect(last.choices[0]!.message.content).toBe('Fine.');
    expect(chats().at(-1)!.body.messages).toEqual([
      ...[HELLO.messages[0], { role: 'assistant', content: '{"a":1}' }, HELLO.messages[0]],
      {
        ...{ role: 'assistant', content: null },
        tool_calls: [{ id: 'call_8', type: 'function', function: { name: 'weather.of', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_8', content: 'There is no such tool.' },
    ]);
  });

  it.each([true, false])('calls tools and returns their results (stream %s)', async (stream) => {
    const call = { id: 'call_7', name: 'weather_of', arguments: '{"city":"Pune"}' };
    upstream.chat({ toolCalls: [call] }, { text: 'Sunny in Pune.' });
    const asked: unknown[] = [];
    const run = {
      ...HELLO,
      tools: [
        {
          type: 'function' as const,
          function: {
            name: 'weather_of',
            description: 'The weather in a city.',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            parse: JSON.parse,
            function: (args: { city: string }) => {
              asked.push(args);
              return { sky: 'clear' };
            },
          },
        },
      ],
    };
    const runner = stream
      ? client.chat.completions.runTools({ ...run, stream: true })
      : client.chat.completions.runTools({ ...run, stream: false });
    expect(await runner.finalContent()).toBe('Sunny in Pune.');
    expect(asked).toEqual([{ city: 'Pune' }]);
    expect(chats()[1]!.body.messages.slice(1)).toMatchObject([
      {
        role: 'assistant',
        tool_calls: [{ id: 'call_7', function: { name: 'weather_of', arguments: call.arguments } }],
      },
      { role: 'tool', tool_call_id: 'call_7', content: '{"sky":"clear"}' },
    ]);
  });

  it('gets a text corrected by the model with the active dictionary', async () => {
    upstream.chat({ text: "We don't ship tandem until Monday.", usage: { prompt_tokens: 400, completion_tokens: 9 } });
    const body = { text: 'we dont ship tandem untill monday', dictionary: [{ term: 'tandem', replacement: 'Tandem' }] };
    const stream = await client.chat.completions.create({ ...(body as unknown as typeof HELLO), stream: true });
    let corrected = '';
    for await (const { choices } of stream) corrected += choices[0]?.delta.content ?? '';
    expect(corrected).toBe("We don't ship Tandem until Monday.");
    expect(chats()[0]!.body.messages[1].content).toContain('untill');
    const usage = await fixture.sql`select operation, quantity::int as tokens from usage_logs
      where workspace_id = ${owner.workspaceId}`;
    expect([...usage]).toEqual([{ operation: 'correct', tokens: 409 }]);
  });

  it('stops the model on abort, and pays for the prompt and the produced tokens', async () => {
    upstream.chat({ text: ['one', ' two'], hang: 'late' });
    const stream = await client.chat.completions.create({ ...HELLO, stream: true });
    let id = '';
    for await (const chunk of stream) {
      id = chunk.id;
      if (chunk.choices[0]?.delta.content === ' two') break;
    }
    // Leaving the loop aborts.
    expect(await chats()[0]!.isLeft).toBe(true);
    await eventually(async () => expect(await rowOf(id)).toMatchObject({ state: 'abandoned', completionTokens: 2 }));
    const { promptTokens } = (await rowOf(id)) as { promptTokens: number };
    const owed = BigInt(promptTokens + 2) * TOKEN_NANO;
    expect(await wallet()).toMatchObject({ balanceNano: USD - owed, heldNano: 0n });
  });

  it('stops the model when it aborts a non-streaming request', async () => {
    upstream.chat({ text: 'one', hang: 'late' });
    const left = new AbortController();
    const asking = client.chat.completions.create({ ...HELLO, stream: false }, { signal: left.signal });
    asking.catch(() => undefined);
    const request = await upstream.request('/chat/completions', 1);
    left.abort();
    await expect(asking).rejects.toThrow(OpenAI.APIUserAbortError);
    expect(await request.isLeft).toBe(true);
    await eventually(async () => expect((await wallet()).heldNano).toBe(0n));
    await eventually(() =>
      expect(fixture.logLines.some((line) => line.includes('"CHAT_CLIENT_CANCELLED"'))).toBe(true),
    );
  });

  it('throws the error class of each failure', async () => {
    const create = (more: object = {}, by = client) =>
      by.chat.completions.create({ ...HELLO, ...more } as typeof HELLO);
    await expect(create({ temperature: 9 })).rejects.toThrow(OpenAI.BadRequestError);
    await expect(create({ temperature: 9 })).rejects.toMatchObject({
      status: 400,
      code: 'VALIDATION_FAILED',
      param: 'temperature',
      type: 'invalid_request_error',
    });
    await expect(create({}, clientOf({ ...owner, key: 'sk_wrong' }))).rejects.toThrow(OpenAI.AuthenticationError);
    const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
    await expect(create({}, clientOf(viewer))).rejects.toThrow(OpenAI.PermissionDeniedError);
    await expect(create({ model: 'gpt-9' })).rejects.toThrow(OpenAI.NotFoundError);
    await expect(create({ model: 'gpt-9' })).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' });
    await expect(create({}, clientOf(await fixture.addWorkspace()))).rejects.toMatchObject({
      status: 402,
      code: 'INSUFFICIENT_CREDITS',
    });
    // The engine retries without options that some servers reject.
    upstream.chat(...Array.from({ length: 4 }, () => ({ status: 400, error: { message: 'no' } })));
    await expect(create()).rejects.toMatchObject({ status: 400, code: 'LLM_REQUEST_REFUSED' });
    expect(await wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
  });

  it('throws when a stream breaks off, and pays nothing', async () => {
    const seen = Promise.withResolvers<void>();
    upstream.chat({ text: ['one', ' two'], drop: 'late', before: (index) => (index === 2 ? seen.promise : undefined) });
    const stream = await client.chat.completions.create({ ...HELLO, stream: true });
    const reading = (async () => {
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'one') seen.resolve();
    })();
    await expect(reading).rejects.toThrow(OpenAI.APIError);
    await expect(reading).rejects.toMatchObject({ code: 'LLM_UNAVAILABLE' });
    expect(await wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
  });

  it('gets an error beyond two concurrent requests, until one ends', async () => {
    upstream.chat({ text: 'one', hang: 'late' }, { text: 'two', hang: 'late' });
    const open = await Promise.all([0, 1].map(() => client.chat.completions.create({ ...HELLO, stream: true })));
    const third = client.chat.completions.create(HELLO);
    await expect(third).rejects.toThrow(OpenAI.RateLimitError);
    await expect(third).rejects.toMatchObject({ code: 'CHAT_CONCURRENCY_LIMIT' });
    for (const stream of open) stream.controller.abort();
    upstream.chat({ text: 'three' });
    await eventually(async () => expect((await client.chat.completions.create(HELLO)).choices).toHaveLength(1));
  });

  it('lists the models', async () => {
    const listed = await client.models.list();
    expect(listed.data.map(({ id }) => id)).toEqual(expect.arrayContaining(['svc-tiny', 'tiny-1.0']));
  });
});

describe('chat stream', () => {
  async function open(more: object = {}, { key }: Member = owner) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...HELLO, ...more }),
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let seen = '';
    return {
      answer,
      /** Waits for the text, or for the end, and returns everything received. */
      async until(text: string | null): Promise<string> {
        while (text === null || !seen.includes(text)) {
          const { done, value } = await reader.read();
          if (done) break;
          seen += value;
        }
        return seen;
      },
    };
  }

  it('sends heartbeats before the first word and between words', async () => {
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    upstream.chat({ text: ['one', 'two'], before: (index) => [null, first, second][index]?.promise });
    const { answer, until: read } = await open();
    expect(answer.status).toBe(200);
    await read(': heartbeat');
    first.resolve();
    const soFar = await read('"one"');
    expect(soFar).toMatch(/^data: \{"type":"chat_id"/);
    await read(`${soFar}: heartbeat`);
    second.resolve();
    expect(await read(null)).toMatch(/data: \[DONE\]\n\n$/);
  });

  it('ends with an error when its credentials are revoked, and charges the produced tokens', async () => {
    upstream.chat({ text: ['one', ' two'], hang: 'late' });
    const leaver = await fixture.addMemberWith('member', owner.workspaceId);
    const { until: read } = await open({}, leaver);
    await read('" two"');
    expect((await fixture.call('DELETE', `/developer/api/${leaver.keyId}`, { as: owner })).status).toBe(200);
    const frames = (await read(null)).trimEnd().split('\n\n');
    expect(JSON.parse(frames.at(-1)!.slice(6))).toMatchObject({ type: 'error', error: { code: 'UNAUTHORIZED' } });
    await eventually(async () => {
      const [row] = await fixture.sql`select state from completions where user_id = ${leaver.userId}`;
      expect(row).toEqual({ state: 'abandoned' });
    });
    expect(await chats()[0]!.isLeft).toBe(true);
  });

  it('ends when the client does not read for a while', async () => {
    // More than the connection buffers, with the frame around each word.
    upstream.chat({ text: Array.from({ length: 60_000 }, () => ' x') });
    const body = JSON.stringify({ ...HELLO, max_tokens: 100_000, save_chat: false });
    const rich = { amountNano: 100n * USD, paymentType: 'one_time', operationKey: 'rich' } as const;
    await topUp(fixture.sql, { workspaceId: owner.workspaceId, ...rich });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    socket.pause();
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${owner.key}`;
    socket.write(`${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await eventually(async () => {
      const [row] = await fixture.sql`select state from completions where workspace_id = ${owner.workspaceId}`;
      expect(row).toEqual({ state: 'abandoned' });
    });
    expect(await chats()[0]!.isLeft).toBe(true);
    expect((await wallet()).heldNano).toBe(0n);
    socket.resume();
    await gone;
  });

  it('leaves no slot, hold or running model after a hundred hang-ups at every stage', async () => {
    const body = JSON.stringify(HELLO);
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${owner.key}`;
    const hangUp = async (index: number) => {
      upstream.chat({ text: 'one', hang: 'late' });
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(`${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      if (index % 3 === 1) await new Promise((resolve) => setImmediate(resolve));
      if (index % 3 === 2) await new Promise((resolve) => socket.once('data', resolve));
      socket.destroy();
    };
    for (let round = 0; round < 50; round += 1) await Promise.all([hangUp(round), hangUp(round + 1)]);
    await eventually(async () => {
      const [row] = await fixture.sql`select count(*)::int as count from completions where state = 'generating'`;
      expect(row).toEqual({ count: 0 });
    });
    expect((await wallet()).heldNano).toBe(0n);
    for (const request of chats()) expect(await request.isLeft).toBe(true);
  }, 60_000);
});
