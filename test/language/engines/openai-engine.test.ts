import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { collectCompletion } from '../../../language/collect-completion.ts';
import { LanguageEngineError } from '../../../language/engine.ts';
import { createOpenAiLanguageEngine } from '../../../language/engines/openai/openai-engine.ts';
import type { CompletionPart, CompletionRequest } from '../../../language/llm.ts';
import { type ModelServer, startModelServer } from '../model-server.ts';

const API_KEY = 'sk-upstream-0123456789';
const SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false,
};
const WEATHER = { name: 'weather', description: 'Of a place.', parameters: { type: 'object', properties: {} } };

const DONE = 'data: [DONE]\n\n';

let server: ModelServer;
let engine: ReturnType<typeof createOpenAiLanguageEngine>;
beforeEach(async () => {
  server = await startModelServer();
  engine = createOpenAiLanguageEngine({ baseUrl: `${server.baseUrl}/`, apiKey: API_KEY });
});
afterEach(() => server[Symbol.asyncDispose]());

type Asked = CompletionRequest & { model: string };

function request(more: Partial<Asked> = {}): Asked {
  const messages = [{ role: 'user' as const, content: 'Hello?' }];
  return { model: 'tiny-1.0', messages, signal: new AbortController().signal, ...more };
}

const complete = (more: Partial<Asked> = {}) => collectCompletion(engine.stream(request(more)));
const sent = () => server.asked('/chat/completions').at(-1)!.body;

async function failure(more: Partial<Asked> = {}): Promise<LanguageEngineError> {
  const error = await complete(more).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LanguageEngineError);
  return error as LanguageEngineError;
}

describe('OpenAI-compatible engine', () => {
  it('streams the answer and reports the usage counted by the server', async () => {
    server.chat({ text: ['Hel', 'lo.'] });
    const parts: CompletionPart[] = [];
    for await (const part of engine.stream(request())) parts.push(part);
    expect(parts).toEqual([
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo.' },
      {
        type: 'finished',
        reason: 'stop',
        usage: { promptTokens: 7, completionTokens: 3, isEstimated: false },
        model: 'tiny-1.0',
      },
    ]);
    const [asked] = server.requests;
    expect(asked?.headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(asked?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it('sends requested options only', async () => {
    await complete({
      temperature: 0.2,
      topP: 0.9,
      topK: 20,
      maxTokens: 64,
      stop: ['\n'],
      seed: 7,
      enableThinking: true,
    });
    expect(sent()).toEqual({
      model: 'tiny-1.0',
      messages: [{ role: 'user', content: 'Hello?' }],
      stream: true,
      stream_options: { include_usage: true },
      chat_template_kwargs: { enable_thinking: true },
      temperature: 0.2,
      top_p: 0.9,
      top_k: 20,
      max_tokens: 64,
      stop: ['\n'],
      seed: 7,
    });
    await complete();
    expect(sent()).not.toHaveProperty('temperature');
    expect(sent().chat_template_kwargs).toEqual({ enable_thinking: false });
  });

  it('calls tools and sends their results back', async () => {
    const toolCalls = [{ id: 'call_1', name: 'weather', arguments: '{"place":"Rome"}' }];
    server.chat({ toolCalls, finishReason: 'stop' });
    const {
      toolCalls: called,
      finishReason,
      text,
    } = await complete({ tools: [WEATHER], toolChoice: { name: 'weather' } });
    expect(called).toEqual(toolCalls);
    expect({ finishReason, text }).toEqual({ finishReason: 'tool_calls', text: '' });
    expect(sent()).toMatchObject({
      tools: [{ type: 'function', function: WEATHER }],
      tool_choice: { type: 'function', function: { name: 'weather' } },
    });
    await complete({
      messages: [
        { role: 'user', content: 'Rain?' },
        { role: 'assistant', content: null, toolCalls },
        { role: 'tool', toolCallId: 'call_1', content: 'Sun.' },
      ],
    });
    expect(sent().messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"place":"Rome"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'Sun.' },
    ]);
  });

  it('numbers and names tool calls that the server leaves unnumbered or unnamed', async () => {
    const call = (name: string, args: unknown) => ({ function: { name, arguments: args } });
    const delta = { tool_calls: [call('a', { x: 1 }), call('b', '{}')] };
    server.chat({ raw: [chunk({ choices: [{ delta, finish_reason: 'stop' }] }), DONE] });
    const { toolCalls } = await complete();
    expect(toolCalls).toEqual([
      { id: expect.stringMatching(/^call_/), name: 'a', arguments: '{"x":1}' },
      { id: expect.stringMatching(/^call_/), name: 'b', arguments: '{}' },
    ]);
  });

  it('keeps tool calls apart that the server sends with one index', async () => {
    const piece = (id: string, name: string | null, args: string) => {
      const call = { index: 0, id, type: 'function', function: { name, arguments: args } };
      return chunk({ choices: [{ delta: { tool_calls: [call] } }] });
    };
    server.chat({
      raw: [
        piece('call_1', 'weather', '{"city":'),
        // Some servers repeat the name, or give each piece another id.
        piece('call_1', 'weather', '"Pune"'),
        piece('piece_3', null, '}'),
        piece('call_2', 'weather', '{"city":"Delhi"}'),
        chunk({ choices: [{ delta: {}, finish_reason: 'stop' }] }),
        DONE,
      ],
    });
    const { toolCalls, finishReason } = await complete();
    expect(toolCalls).toEqual([
      { id: 'call_1', name: 'weather', arguments: '{"city":"Pune"}' },
      { id: 'call_2', name: 'weather', arguments: '{"city":"Delhi"}' },
    ]);
    expect(finishReason).toBe('tool_calls');
  });

  it('keeps tool calls apart that the server sends without index and id, in chunks of their own', async () => {
    const piece = (fields: object) => chunk({ choices: [{ delta: { tool_calls: [{ function: fields }] } }] });
    server.chat({
      raw: [
        piece({ name: 'weather', arguments: '{"city":' }),
        piece({ arguments: '"Pune"}' }),
        piece({ name: 'weather', arguments: '{"city":"Delhi"}' }),
        chunk({ choices: [{ delta: {}, finish_reason: 'stop' }] }),
        DONE,
      ],
    });
    const { toolCalls } = await complete();
    expect(toolCalls).toMatchObject([
      { name: 'weather', arguments: '{"city":"Pune"}' },
      { name: 'weather', arguments: '{"city":"Delhi"}' },
    ]);
    expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(2);
  });

  it('requests JSON by schema, strict where OpenAI can', async () => {
    await complete({ responseSchema: { name: 'my answer', schema: SCHEMA } });
    expect(sent().response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'my_answer', schema: SCHEMA, strict: true },
    });
    await complete({ responseSchema: { name: 'a', schema: { ...SCHEMA, additionalProperties: true } } });
    expect(sent().response_format.json_schema.strict).toBe(false);
  });

  it.each(['reasoning_content', 'reasoning'] as const)('separates %s from text', async (reasoningField) => {
    server.chat({ reasoning: 'Hm.', reasoningField, text: 'Yes.' });
    expect(await complete()).toMatchObject({ reasoning: 'Hm.', text: 'Yes.' });
  });

  it('separates think tags from text', async () => {
    server.chat({ text: ['<th', 'ink>Hm.</thi', 'nk>\n\nYes', '.'] });
    expect(await complete()).toMatchObject({ reasoning: 'Hm.', text: 'Yes.' });
  });

  it('estimates the usage if the server reports none or impossible counts', async () => {
    server.chat(
      { text: 'Hello, you.', usage: null },
      { text: 'Hello, you.', usage: { prompt_tokens: '7', completion_tokens: -1 } },
      { text: 'Hello, you.', usage: { prompt_tokens: 7, completion_tokens: 90_000_000 } },
    );
    for (let turn = 0; turn < 3; turn++) {
      const { usage } = await complete();
      expect(usage.isEstimated).toBe(true);
      expect(usage.promptTokens).toBeGreaterThan(3);
      expect(usage.completionTokens).toBeGreaterThan(2);
      expect(usage.completionTokens).toBeLessThan(20);
    }
  });

  it('accepts an answer without streaming', async () => {
    const toolCalls = [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }];
    const message = { role: 'assistant', content: 'Yes.', tool_calls: toolCalls };
    const usage = { prompt_tokens: 4, completion_tokens: 2 };
    const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage }, null, 2);
    server.chat({ raw: [body], contentType: 'application/json; charset=utf-8' });
    expect(await complete()).toMatchObject({
      text: 'Yes.',
      toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{}' }],
      finishReason: 'tool_calls',
      usage: { promptTokens: 4, completionTokens: 2, isEstimated: false },
    });
  });

  it('lists chat models with their context length', async () => {
    server.models = [
      { id: 'qwen3-4b', created: 5, owned_by: 'vllm', max_model_len: 32_768 },
      { id: 'nomic-embed-text' },
      { id: 'qwen3-4b', owned_by: 'twice' },
      { id: 'a\nb' },
      { id: 7 },
      null,
      { id: 'llama', created: 'x', owned_by: {}, meta: { n_ctx: 4096 } },
      { id: '__proto__' },
    ];
    const models = await engine.models(new AbortController().signal);
    expect(models.map(({ id, created, ownedBy, contextTokens }) => [id, created, ownedBy, contextTokens])).toEqual([
      ['qwen3-4b', 5, 'vllm', 32_768],
      ['llama', 0, 'unknown', 4096],
      ['__proto__', 0, 'unknown', null],
    ]);
  });
});

describe('a server with missing features', () => {
  it.each(['stream_options', 'chat_template_kwargs'])('receives no %s after it rejected it once', async (field) => {
    server.refused.add(field);
    expect((await complete()).text).toBe('You said: Hello?');
    expect(sent()).not.toHaveProperty(field);
    await complete();
    expect(server.asked('/chat/completions')).toHaveLength(3);
  });

  it.each([
    ['top_k', { topK: -3 }],
    ['temperature', { temperature: 0 }],
    ['seed', { seed: 5 }],
  ])('receives a retry without %s, while later requests keep it', async (field, more) => {
    server.refused.add(field);
    expect((await complete(more)).text).toBe('You said: Hello?');
    expect(sent()).not.toHaveProperty(field);
    server.refused.clear();
    await complete(more);
    expect(sent()).toHaveProperty(field);
  });

  it('cannot drop fields for other clients by echoing their text', async () => {
    const messages = [{ role: 'user' as const, content: 'stream_options chat_template_kwargs json_schema' }];
    const echo = { status: 422, error: { message: 'bad', input: messages[0]?.content } };
    server.chat(echo, echo);
    await complete({ messages, topK: -1 });
    expect(Object.keys(sent()).sort()).toEqual(['messages', 'model', 'stream']);
    await complete();
    expect(sent()).toMatchObject({ stream_options: {}, chat_template_kwargs: {} });
  });

  it('receives max_completion_tokens if it requires that', async () => {
    const message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    server.chat({ status: 400, error: { message, param: 'max_tokens' } });
    await complete({ maxTokens: 9 });
    expect(sent()).toMatchObject({ max_completion_tokens: 9 });
    await complete({ maxTokens: 9 });
    expect(sent()).not.toHaveProperty('max_tokens');
    expect(server.requests).toHaveLength(3);
  });

  it('receives JSON mode with the schema in the prompt', async () => {
    server.refused.add('response_format=json_schema');
    const responseSchema = { name: 'a', schema: SCHEMA };
    await complete({ responseSchema, messages: [{ role: 'system', content: 'Be brief.' }, ...request().messages] });
    expect(sent().response_format).toEqual({ type: 'json_object' });
    expect(sent().messages).toHaveLength(2);
    expect(sent().messages[0].content).toContain('Be brief.');
    expect(sent().messages[0].content).toContain(JSON.stringify(SCHEMA));

    server.refused.add('response_format=json_object');
    await complete({ responseSchema });
    expect(sent()).not.toHaveProperty('response_format');
    expect(sent().messages[0].content).toContain(JSON.stringify(SCHEMA));
  });

  it('receives one retry without extensions after an unspecific rejection', async () => {
    server.chat({ status: 400, error: 'Bad Request' });
    expect((await complete({ topK: 4, temperature: 0 })).text).toBe('You said: Hello?');
    expect(Object.keys(sent()).sort()).toEqual(['messages', 'model', 'stream', 'temperature']);
  });

  it('receives a bounded number of retries when it rejects the request itself', async () => {
    server.chat(
      ...Array.from({ length: 9 }, () => ({ status: 422, error: { message: 'No.', type: 'invalid_request_error' } })),
    );
    expect(await failure({ topK: 4 })).toMatchObject({ code: 'refused', retryable: false });
    expect(server.requests.length).toBeLessThan(4);
  });
});

describe('a failing server', () => {
  it.each([
    [{ status: 429, headers: { 'retry-after': '7' } }, 'rate_limited', 7],
    [{ status: 500 }, 'unavailable', null],
    [{ status: 503, headers: { 'retry-after': '2' } }, 'unavailable', 2],
    [{ status: 504 }, 'timeout', null],
    [{ status: 401 }, 'unavailable', null],
    [
      { status: 404, error: { message: 'The model `x` does not exist', code: 'model_not_found' } },
      'model_not_found',
      null,
    ],
    [{ status: 404, error: 'Not Found' }, 'unavailable', null],
    [{ status: 400, error: { message: 'too much', code: 'context_length_exceeded' } }, 'context_too_long', null],
    [
      {
        status: 400,
        error: { message: "This model's maximum context length is 4096 tokens.", type: 'BadRequestError' },
      },
      'context_too_long',
      null,
    ],
    [
      { status: 400, error: { message: 'request (9000 tokens) exceeds the available context size' } },
      'context_too_long',
      null,
    ],
    [{ status: 403, error: { message: 'Not in your country.' } }, 'unavailable', null],
    [{ drop: 'early' }, 'unavailable', null],
    [{ text: 'Hel', drop: 'late' }, 'unavailable', null],
  ] as const)('with %o ends in %s', async (turn, code, retryAfterS) => {
    server.chat(turn, turn, turn);
    const isOfRequest = 'status' in turn && turn.status === 500;
    expect(await failure()).toMatchObject({ code, retryAfterS, ofRequest: isOfRequest });
  });

  it('counts as unavailable when the connection is refused', async () => {
    await server[Symbol.asyncDispose]();
    const error = await failure();
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('ECONNREFUSED') });
    server = await startModelServer();
  });

  it('delivers the parts before an error in mid-answer', async () => {
    server.chat({
      raw: [chunk({ choices: [{ delta: { content: 'Hel' } }] }), chunk({ error: { message: 'CUDA', code: 500 } })],
    });
    const parts: string[] = [];
    const read = async () => {
      for await (const part of engine.stream(request())) parts.push(part.type);
    };
    await expect(read()).rejects.toMatchObject({ code: 'unavailable' });
    expect(parts).toEqual(['text']);
  });

  it('cannot spoil an answer by an error behind its end', async () => {
    const raw = [chunk({ choices: [{ delta: { content: 'Hello.' }, finish_reason: 'stop' }] })];
    server.chat({ raw });
    expect(await complete()).toMatchObject({ text: 'Hello.', finishReason: 'stop', usage: { isEstimated: true } });
  });

  it('leaks neither its message nor the API key into an error', async () => {
    const secret = `Your key ${API_KEY} may not say: my name is Ann`;
    const written = API_KEY.replaceAll('-', '_');
    const codes = [written, `invalid_${written}`, `${written}_revoked`, written.toUpperCase(), written.slice(2)];
    for (const [status, code] of [400, 401, 404, 429, 500].flatMap((one) =>
      codes.map((code) => [one, code] as const),
    )) {
      server.chat(
        ...Array.from({ length: 3 }, () => ({ status, error: { message: secret, type: secret, code, param: secret } })),
      );
      const error = await failure();
      const printed = JSON.stringify([error.message, error.stack, error.cause, { ...error }]);
      expect(printed).not.toContain(API_KEY);
      expect(printed.toLowerCase()).not.toContain(written.slice(2));
      expect(printed).not.toContain('Ann');
    }
  });
});

describe('a hostile server', () => {
  const head = { choices: [{ delta: { content: 'Hi' } }] };

  it.each([
    ['a web page', ['<html>Welcome</html>'], 'text/html'],
    ['an invalid event', ['data: {"choices": [\n\n', DONE], 'text/event-stream'],
    ['broken JSON', ['{"choices": '], 'application/json'],
    ['an empty body', [], 'text/event-stream'],
    ['only the end marker', [DONE], 'text/event-stream'],
    ['JSON of another shape', ['[1,2,3]'], 'application/json'],
    ['null', ['null'], 'application/json'],
    ['a null choice', [chunk({ choices: [null] }), DONE], 'text/event-stream'],
    ['an answer without a finish reason', [chunk(head)], 'text/event-stream'],
    ['an endless line', [chunk(head), `data: "${'x'.repeat(600_000)}`], 'text/event-stream'],
    ['endless lines', [chunk(head), 'data: 1\n'.repeat(80_000)], 'text/event-stream'],
    ['a huge document', [`{"x":"${'x'.repeat(1_100_000)}"}`], 'application/json'],
  ])('counts as unavailable when it answers with %s', async (_what, raw, contentType) => {
    server.chat({ raw, contentType });
    expect(await failure()).toMatchObject({ code: 'unavailable' });
  });

  it('sends wrong types, which are skipped', async () => {
    const odd = [
      { choices: 7 },
      { choices: [7] },
      { choices: [{ delta: 'x' }] },
      { choices: [{ delta: { content: { a: 1 }, reasoning: 5, tool_calls: { length: 3 } } }] },
      { choices: [{ delta: { tool_calls: [null, 7, {}, { index: -1, function: { name: {}, arguments: 3 } }] } }] },
      { choices: [{ delta: { content: [{ type: 'text', text: 'Hel' }, { text: 5 }, null] } }] },
      { choices: [{ delta: { content: 'lo.' }, finish_reason: 'constructor' }], usage: 'much' },
      [],
      'text',
    ];
    server.chat({ raw: [...odd.map(chunk), DONE] });
    expect(await complete()).toMatchObject({ text: 'Hello.', toolCalls: [], finishReason: 'stop' });
  });

  it('sends broken or split UTF-8, which is still decoded', async () => {
    const bytes = Buffer.from(`${chunk({ choices: [{ delta: { content: 'né' }, finish_reason: 'stop' }] })}${DONE}`);
    const at = bytes.indexOf(0xc3) + 1;
    server.chat(
      { raw: [bytes.subarray(0, at), bytes.subarray(at)] },
      { raw: [Buffer.from([0xff]), bytes.subarray(1)] },
    );
    expect((await complete()).text).toBe('né');
    server.chat({ raw: [bytes.subarray(0, at), bytes.subarray(at + 1)] });
    await complete().catch(() => {});
    expect((await complete()).text).toContain('n');
  });

  it('sends CRLF line ends in single bytes, which are still decoded', async () => {
    const stream = `: hello\r\n\r\n${chunk({ choices: [{ delta: { content: 'Yes.' }, finish_reason: 'stop' }] })}${DONE}`;
    server.chat({ raw: [...stream.replace(/\r?\n/g, '\r\n')] });
    expect((await complete()).text).toBe('Yes.');
  });

  it('loses the connection once it exceeds max_tokens by far', async () => {
    server.chat({
      handle: (response) => endlessly(response, chunk({ choices: [{ delta: { content: 'x'.repeat(500) } }] })),
    });
    const { finishReason, text } = await complete({ maxTokens: 10 });
    expect(finishReason).toBe('length');
    expect(text.length).toBeLessThan(3_000);
    expect(await server.requests[0]?.isLeft).toBe(true);
  });

  it('loses the connection when its answer never ends', async () => {
    server.chat({
      handle: (response) => endlessly(response, chunk({ choices: [{ delta: { content: 'x'.repeat(50_000) } }] })),
    });
    const { finishReason, text } = await complete();
    expect(finishReason).toBe('length');
    expect(text.length).toBeLessThan(2_000_000);
    expect(await server.requests[0]?.isLeft).toBe(true);
  });

  it('loses the connection when it calls tools without end', async () => {
    let index = 0;
    const next = () =>
      chunk({ choices: [{ delta: { tool_calls: [{ index: index++, id: `c${index}`, function: { name: 'x' } }] } }] });
    server.chat({ handle: (response) => endlessly(response, next) });
    expect(await failure()).toMatchObject({ code: 'unavailable' });
    expect(await server.requests[0]?.isLeft).toBe(true);
  });

  it('receives no key through a redirect', async () => {
    await using elsewhere = await startModelServer();
    server.chat({ status: 307, headers: { location: `${elsewhere.baseUrl}/chat/completions` } });
    expect(await failure()).toMatchObject({ code: 'unavailable' });
    expect(elsewhere.requests).toEqual([]);
  });

  it('cannot delay the model list beyond its timeout', async () => {
    server.listing({ hang: 'early' });
    const hasty = createOpenAiLanguageEngine({ baseUrl: server.baseUrl, apiKey: null, listWithinMs: 1 });
    await expect(hasty.models(new AbortController().signal)).rejects.toMatchObject({ code: 'timeout' });
  });

  it.each([
    ['null', 'null'],
    ['a string as list', '{"data":"none"}'],
    ['a web page', '<html>'],
  ])('with %s as the model list yields an empty list or an error', async (_what, raw) => {
    server.listing({ raw: [raw], contentType: 'application/json' });
    const models = await engine.models(new AbortController().signal).catch((error: unknown) => error);
    if (models instanceof Error) expect(models).toMatchObject({ code: 'unavailable' });
    else expect(models).toEqual([]);
  });
});

describe('the client of an engine', () => {
  it('cancels an answer at any time and closes the connection', async () => {
    for (const turn of [{ hang: 'early' as const }, { text: 'Hel', hang: 'late' as const }]) {
      const abort = new AbortController();
      server.chat(turn);
      const answer = complete({ signal: abort.signal });
      const asked = await server.request('/chat/completions', server.asked('/chat/completions').length + 1);
      abort.abort(new Error('enough'));
      await expect(answer).rejects.toThrow('enough');
      expect(await asked.isLeft).toBe(true);
    }
  });

  it('closes the connection when it stops reading', async () => {
    server.chat({ text: ['a', 'b', 'c'], hang: 'late' });
    for await (const part of engine.stream(request())) if (part.type === 'text') break;
    expect(await server.requests[0]?.isLeft).toBe(true);
  });
});

function chunk(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function endlessly(response: ServerResponse, piece: string | (() => string)): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const write = () => {
    while (!response.destroyed && response.write(typeof piece === 'string' ? piece : piece()));
  };
  response.on('drain', write);
  write();
}
