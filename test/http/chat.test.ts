import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const USD = 1_000_000_000n;
const TOKEN_NANO = 20_000n;
const PATH = '/v1/chat/completions';

let fixture: HttpFixture;
let owner: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  owner = await fixture.addWorkspace();
  await fund(owner, USD);
  fixture.models.requests.length = 0;
});

async function fund({ workspaceId }: Member, amountNano: bigint, key = 'first') {
  await topUp(fixture.sql, {
    workspaceId,
    amountNano,
    paymentType: 'one_time',
    operationKey: `fund:${workspaceId}:${key}`,
  });
}

const ask = (body: object, more: object = {}) => fixture.call('POST', PATH, { as: owner, body, ...more });
const said = (content: string) => [{ role: 'user', content }];
const wallet = () => walletOf(fixture.sql, owner.workspaceId);
const lastAsked = () => fixture.models.requests.at(-1)!;

function framesOf(raw: Buffer) {
  return raw
    .toString()
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => (frame === 'data: [DONE]' ? frame : JSON.parse(frame.slice(6))));
}

describe('chat answer as JSON', () => {
  it('contains the specified fields, and reports the cost of its tokens', async () => {
    fixture.models.queue({ text: ['Hel', 'lo 😀.'], usage: { promptTokens: 9, completionTokens: 3 } });
    const { status, body, headers } = await ask({ messages: said('Hi 😀'), stream: false });
    expect(status).toBe(200);
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: Math.floor(fixture.now.current.getTime() / 1000),
      model: 'tiny-1.0',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello 😀.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      chat_id: expect.stringMatching(/^chat_/),
      response_time_ms: expect.any(Number),
    });
    expect(headers['x-credit-charged']).toBe('0.00024');
    expect(await wallet()).toMatchObject({ balanceNano: USD - 12n * TOKEN_NANO, heldNano: 0n });
    expect(headers['x-credit-balance']).toBe('0.99976');
    const [row] = await fixture.sql`select entry_id, service, operation, quantity::float8 as quantity, unit, resource_id
      from usage_logs where workspace_id = ${owner.workspaceId}`;
    expect(row).toEqual({
      entryId: headers['x-billing-tx'],
      service: 'llm',
      operation: 'chat',
      quantity: 12,
      unit: 'token',
      resourceId: body.id,
    });
  });
});

describe('chat answer as events', () => {
  it('sends its frames in the specified order', async () => {
    fixture.models.queue({ reasoning: 'Hm.', text: ['Hel', 'lo.'], usage: { promptTokens: 9, completionTokens: 3 } });
    const { status, headers, raw } = await ask({
      messages: said('Hi'),
      chat_template_kwargs: { enable_thinking: true },
    });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const frames = framesOf(raw);
    const same = {
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion.chunk',
      created: expect.any(Number),
      model: 'tiny-1.0',
    };
    expect(frames).toEqual([
      { type: 'chat_id', chat_id: expect.stringMatching(/^chat_/), ...same, choices: [] },
      { ...same, choices: [{ index: 0, delta: { role: 'assistant', reasoning_content: 'Hm.' }, finish_reason: null }] },
      { ...same, choices: [{ index: 0, delta: { content: 'Hel' }, finish_reason: null }] },
      { ...same, choices: [{ index: 0, delta: { content: 'lo.' }, finish_reason: null }] },
      { ...same, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      {
        type: 'done',
        response_time_ms: expect.any(Number),
        ...same,
        choices: [],
        usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
        billing: { 'x-credit-balance': '0.99976', 'x-credit-charged': '0.00024', 'x-billing-tx': expect.any(String) },
      },
      'data: [DONE]',
    ]);
    expect(lastAsked()).toMatchObject({ topK: 20, enableThinking: true, model: 'tiny-1.0' });
  });
});

describe('stream or JSON answer', () => {
  it.each([
    [{}, '*/*', true],
    [{}, 'text/html', true],
    [{}, 'application/json', false],
    [{}, 'application/json, text/event-stream', true],
    [{ stream: null }, 'Application/JSON', false],
    [{ stream: true }, 'application/json', true],
    [{ stream: false }, 'text/event-stream', false],
  ])('depends on %j and Accept %s: stream %s', async (more, accept, isStream) => {
    const { headers } = await ask({ messages: said('Hi'), ...more }, { headers: { accept } });
    expect(String(headers['content-type']).startsWith('text/event-stream')).toBe(isStream);
  });

  it('reports the usage in a separate chunk on request', async () => {
    const options = { stream_options: { include_usage: true } };
    const { raw } = await ask({ messages: said('Hi'), ...options });
    const usages = framesOf(raw).map(({ usage }) => usage);
    const total = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    // Chat, text, finish reason, usage, done, [DONE].
    expect(usages).toEqual([undefined, null, null, total, total, undefined]);
  });

  it('omits the new-chat frame when the chat is unsaved or continued', async () => {
    const unkept = await ask({ messages: said('Hi'), save_chat: false });
    expect(framesOf(unkept.raw)[0]).toMatchObject({ choices: [{ delta: { content: 'Hello.' } }] });
    const { body } = await ask({ messages: said('Hi'), stream: false });
    const more = await ask({ messages: said('Hi'), chat_id: body.chat_id });
    expect(framesOf(more.raw)[0]).toMatchObject({ choices: [{ delta: { content: 'Hello.' } }] });
    const whole = await ask({ messages: said('Hi'), chat_id: body.chat_id, stream: false });
    expect(whole.body.chat_id).toBeUndefined();
  });

  it('reports a mid-stream error in one frame for both kinds of clients, without [DONE]', async () => {
    const error = new TandemError('LLM_TIMEOUT', 'The model took too long.');
    fixture.models.queue({ text: 'Half', error });
    const { status, raw } = await ask({ messages: said('Hi') });
    expect(status).toBe(200);
    const frames = framesOf(raw);
    expect(frames.at(-1)).toEqual({
      type: 'error',
      message: 'The model took too long.',
      code: 'LLM_TIMEOUT',
      error: { message: 'The model took too long.', type: 'server_error', param: null, code: 'LLM_TIMEOUT' },
    });
    expect(raw.toString()).not.toContain('[DONE]');
    expect(await wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
  });

  it.each([
    ['LLM_RATE_LIMITED', 429, 'rate_limit_error'],
    ['LLM_UNAVAILABLE', 503, 'server_error'],
    ['LLM_TIMEOUT', 504, 'server_error'],
    ['CONTEXT_LENGTH_EXCEEDED', 400, 'invalid_request_error'],
  ] as const)('answers %s before the first word as %i, with both envelopes', async (code, status, type) => {
    for (const stream of [true, false]) {
      fixture.models.queue(new TandemError(code, 'No.', { retryAfterS: 7 }));
      const answer = await ask({ messages: said('Hi'), stream });
      expect(answer.status).toBe(status);
      expect(answer.body).toMatchObject({
        success: false,
        message: 'No.',
        code,
        error: { message: 'No.', type, param: null, code },
        request_id: answer.headers['x-request-id'],
      });
      if (status === 429 || status === 503) expect(answer.headers['retry-after']).toBe('7');
      expect(await wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
    }
  });
});

describe('errors below /v1/', () => {
  it("use OpenAI's format for bad credentials, paths and bodies", async () => {
    const unauthorised = await fixture.call('POST', PATH, { as: null, body: { messages: said('Hi') } });
    expect(unauthorised.status).toBe(401);
    expect(unauthorised.body).toMatchObject({
      success: false,
      code: 'UNAUTHORIZED',
      error: { type: 'authentication_error' },
    });
    const nowhere = await fixture.call('GET', '/v1/engines', { as: owner });
    expect(nowhere.body).toMatchObject({ code: 'NOT_FOUND', error: { code: 'NOT_FOUND' } });
    const invalid = await ask({ messages: said('Hi'), temperature: 9 });
    expect(invalid.body).toMatchObject({
      details: [{ path: 'temperature' }],
      error: { type: 'invalid_request_error', param: 'temperature', code: 'VALIDATION_FAILED' },
    });
    const alias = await fixture.call('POST', '/v1/stream', { as: owner, body: {} });
    expect(alias.body.error).toMatchObject({ type: 'invalid_request_error', param: 'text' });
  });
});

describe('chat request', () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const TOOLS = [{ type: 'function', function: { name: 'f' } }];

  it('reaches the model from fields of the specification and of OpenAI', async () => {
    fixture.models.queue('31 degrees.');
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const { status } = await ask({
      model: 'svc-tiny',
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'system',
          content: [
            { type: 'text', text: 'In' },
            { type: 'text', text: 'Hindi.' },
          ],
        },
        { role: 'user', content: 'Weather?', name: 'ada' },
        {
          role: 'assistant',
          content: null,
          refusal: null,
          annotations: [],
          audio: null,
          tool_calls: [call('a'), call('b')],
        },
        { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: '31' }] },
        { role: 'tool', tool_call_id: 'a', content: '' },
      ],
      tools: [{ type: 'function', function: { name: 'f', description: 'Weather', parameters, strict: true } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: { name: 'w', schema: parameters, strict: true } },
      ...{ temperature: 0.5, top_p: 0.9, top_k: 7, seed: 3, stop: 'end', max_tokens: 50, max_completion_tokens: 60 },
      ...{ n: 1, user: 'ada', store: false, metadata: { a: '1' }, parallel_tool_calls: true, presence_penalty: 0 },
      ...{ frequency_penalty: null, logprobs: false, stream: false, service_tier: 'auto' },
    });
    expect(status).toBe(200);
    expect(lastAsked()).toMatchObject({
      model: 'tiny-1.0',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'system', content: 'In\nHindi.' },
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: null,
          toolCalls: [
            { id: 'a', name: 'f', arguments: '{}' },
            { id: 'b', name: 'f', arguments: '{}' },
          ],
        },
        { role: 'tool', toolCallId: 'b', content: '31' },
        { role: 'tool', toolCallId: 'a', content: '' },
      ],
      tools: [{ name: 'f', description: 'Weather', parameters }],
      toolChoice: { name: 'f' },
      responseSchema: { name: 'w', schema: parameters },
      ...{ temperature: 0.5, topP: 0.9, topK: 7, seed: 3, stop: ['end'], maxTokens: 60, enableThinking: false },
    });
  });

  it('accepts flat tools as specified', async () => {
    fixture.models.queue({ toolCalls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }] });
    const { body } = await ask({ messages: said('Go'), tool: [{ name: 'f', description: 'd' }], stream: false });
    expect(lastAsked()).toMatchObject({
      tools: [{ name: 'f', description: 'd', parameters: null }],
      toolChoice: 'auto',
    });
    expect(body.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
      },
    });
  });

  it.each<[string, object, string]>([
    ['neither messages nor text', {}, 'messages'],
    ['both', { messages: said('a'), text: 'b' }, 'text'],
    ['no message', { messages: [] }, 'messages'],
    ['nine answers', { messages: said('a'), n: 9 }, 'n'],
    ['two corrections', { text: 'a', n: 2 }, 'n'],
    ['a penalty', { messages: said('a'), presence_penalty: 1 }, 'presence_penalty'],
    ['an unknown field', { messages: said('a'), mesages: [] }, 'mesages'],
    [
      'a picture',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'messages.0.content.0',
    ],
    ['NUL', { messages: said('a\0b') }, 'messages.0.content'],
    ['half a character', { messages: said('a\ud800') }, 'messages.0.content'],
    ['NUL in a text', { text: 'a\0b' }, 'text'],
    ['a text of nothing', { text: ' \n ' }, 'text'],
    ['a message without content', { messages: [{ role: 'user' }] }, 'messages.0.content'],
    [
      'an assistant message without content or tool calls',
      { messages: [{ role: 'assistant', content: null }] },
      'messages.0.content',
    ],
    [
      'tool calls of a user',
      { messages: [{ role: 'user', content: 'a', tool_calls: [call('a')] }] },
      'messages.0.tool_calls',
    ],
    [
      'a result of nothing',
      { messages: [{ role: 'tool', tool_call_id: 'a', content: 'b' }] },
      'messages.0.tool_call_id',
    ],
    ['a result without a call', { messages: [{ role: 'tool', content: 'b' }] }, 'messages.0.tool_call_id'],
    ['a call without a result', { messages: [{ role: 'assistant', tool_calls: [call('a')] }] }, 'messages'],
    ['tools of one name', { messages: said('a'), tool: [{ name: 'f' }, { name: 'f' }] }, 'tool.1'],
    ['tools in two ways', { messages: said('a'), tool: [{ name: 'f' }], tools: TOOLS }, 'tool'],
    ['a tool of no name', { messages: said('a'), tool: [{ name: 'a b' }] }, 'tool.0.name'],
    [
      'a choice of no tool',
      { messages: said('a'), tools: TOOLS, tool_choice: { type: 'function', function: { name: 'constructor' } } },
      'tool_choice.function.name',
    ],
    [
      'no schema of an answer',
      { messages: said('a'), response_format: { type: 'json_schema' } },
      'response_format.json_schema',
    ],
    ['a dictionary for messages', { messages: said('a'), dictionary: [] }, 'dictionary'],
    [
      '101 entries',
      { text: 'a', dictionary: Array.from({ length: 101 }, () => ({ term: 'a', replacement: 'b' })) },
      'dictionary',
    ],
    ['a long term', { text: 'a', dictionary: [{ term: 'a'.repeat(201), replacement: '' }] }, 'dictionary.0.term'],
    ['an unknown style', { text: 'a', style: { colour: 'red' } }, 'style.colour'],
    ['an unknown context', { text: 'a', appContext: 'fax' }, 'appContext'],
  ])('rejects %s and holds nothing', async (_what, body, path) => {
    const answer = await ask(body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'VALIDATION_FAILED' });
    expect(answer.body.details.map((detail: { path: string }) => detail.path)).toContain(path);
    expect(fixture.models.requests).toEqual([]);
    expect(await wallet()).toMatchObject({ balanceNano: USD, heldNano: 0n });
  });

  it('accepts a body of at most 512 KiB', async () => {
    await fund(owner, 5n * USD, 'more');
    const most = await ask({ messages: said('a '.repeat(200_000)), stream: false });
    expect(most.status).toBe(200);
    const more = await ask({ messages: said('a '.repeat(270_000)), stream: false });
    expect(more).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE', message: 'The body must be at most 512 KiB.' },
    });
    expect(
      (await fixture.call('POST', '/tts-stream', { as: owner, body: { text: 'a'.repeat(70_000) } })).body.message,
    ).toContain('64 KiB');
  });

  it('names the workspace in a session', async () => {
    const { body } = await ask({ messages: said('Hi'), stream: false, workspace_id: owner.workspaceId });
    expect(body.choices[0].message.content).toBe('Hello.');
  });
});

describe('chat without a model', () => {
  it('refuses messages, and corrects texts by rules', async () => {
    const { models } = fixture.models;
    fixture.models.models = [];
    try {
      const refused = await ask({ messages: said('Hi') });
      expect(refused).toMatchObject({
        status: 503,
        body: { code: 'LLM_NOT_CONFIGURED', error: { type: 'server_error' } },
      });
      const text = 'we ship tandem monday';
      const dictionary = [{ term: 'tandem', replacement: 'Tandem' }];
      for (const model of [{}, { model: 'svc-tiny' }, { model: null }]) {
        const { status, body } = await ask({ text, dictionary, tool: [{ name: 'f' }], stream: false, ...model });
        expect(status).toBe(200);
        expect(body.model).toMatch(/^tandem-rules-\d+$/);
        expect(body.choices[0].message.content).toContain('Tandem');
      }
    } finally {
      fixture.models.models = models;
    }
  });
});

describe('saved chats', () => {
  it('appear, open and disappear for their owner alone', async () => {
    const first = (await ask({ messages: said('First'), stream: false })).body.chat_id;
    fixture.now.current = new Date(fixture.now.current.getTime() + 1_000);
    fixture.models.queue({ toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }] });
    const second = (await ask({ messages: said('Second'), stream: false })).body.chat_id;
    const list = await fixture.call('GET', '/chats', { as: owner });
    expect(list.body.data).toEqual({
      chats: [second, first].map((chat_id) => ({
        chat_id,
        title: chat_id === first ? 'First' : 'Second',
        message_count: 2,
        created_at: expect.any(String),
        updated_at: expect.any(String),
      })),
      pagination: { page: 1, limit: 20, total: 2, pages: 1 },
    });
    const shown = await fixture.call('GET', `/chats/${second}?limit=1&page=2`, { as: owner });
    expect(shown.body.data).toMatchObject({
      chat_id: second,
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
          model: 'tiny-1.0',
        },
      ],
      pagination: { page: 2, limit: 1, total: 2, pages: 2 },
    });
    const colleague = await fixture.addMemberWith('admin', owner.workspaceId);
    expect((await fixture.call('GET', '/chats', { as: colleague })).body.data.chats).toEqual([]);
    for (const method of ['GET', 'DELETE'] as const) {
      const answer = await fixture.call(method, `/chats/${first}`, { as: colleague });
      expect(answer).toMatchObject({ status: 404, body: { code: 'CHAT_NOT_FOUND' } });
    }
    const asked = await fixture.call('POST', PATH, { as: colleague, body: { messages: said('a'), chat_id: first } });
    expect(asked).toMatchObject({ status: 404, body: { code: 'CHAT_NOT_FOUND' } });
    const deleted = await fixture.call('DELETE', `/chats/${first}`, { as: owner });
    expect(deleted.body.data).toEqual({ chat_id: first, deleted: true });
    expect((await fixture.call('DELETE', `/chats/${first}`, { as: owner })).status).toBe(404);
    const gone = await ask({ messages: said('Hi'), chat_id: first });
    expect(gone).toMatchObject({ status: 404, body: { error: { code: 'CHAT_NOT_FOUND' } } });
  });
});

it('answers an empty wallet with 402 and without billing headers', async () => {
  const poor = await fixture.addWorkspace();
  const { status, body, headers } = await ask({ messages: said('Hi') }, { as: poor });
  expect(status).toBe(402);
  expect(body).toMatchObject({
    code: 'INSUFFICIENT_CREDITS',
    details: { required: expect.any(Number), available: 0, shortfall: expect.any(Number) },
    error: { type: 'insufficient_quota' },
  });
  expect(headers['x-billing-tx']).toBeUndefined();
});

it('logs neither questions nor answers, even after errors', async () => {
  fixture.logLines.length = 0;
  fixture.models.queue('The lantern is green.', { text: 'lantern', error: new Error('lantern') }, new Error('lantern'));
  for (let index = 0; index < 3; index += 1) await ask({ messages: said('Where is the lantern?'), user: 'lantern' });
  await ask({ messages: said('lantern'), chat_id: 'lantern' });
  await ask({ messages: [{ role: 'lantern', content: 'lantern' }] });
  await ask({ text: 'the lantern', dictionary: [{ term: 'lantern', replacement: 'lantern' }] });
  expect(fixture.logLines.length).toBeGreaterThanOrEqual(6);
  expect(fixture.logLines.filter((line) => !line.includes('"pii"')).join('')).not.toContain('lantern');
});
