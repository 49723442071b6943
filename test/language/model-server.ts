import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Scripted answer to one request. An empty turn echoes the last user message. */
export interface ServerTurn {
  /** One chunk per string. */
  text?: string | readonly string[];
  reasoning?: string;
  /** Tokens of `logprobs` for each chunk of `text`, in turns without `reasoning`. */
  logprobs?: readonly (readonly unknown[])[];
  reasoningField?: 'reasoning_content' | 'reasoning';
  toolCalls?: readonly { id: string; name: string; arguments: string }[];
  /** Null: never sent. Default `stop`, or `tool_calls`. */
  finishReason?: string | null;
  /** Null: never sent. Default 7 and 3 tokens. */
  usage?: { prompt_tokens: unknown; completion_tokens: unknown } | null;
  before?: (index: number) => Promise<void> | undefined;
  /** Error status, with `error` in its body. */
  status?: number;
  error?: unknown;
  headers?: Record<string, string>;
  /** `early`: no headers; `late`: nothing after the last chunk. Lasts until the client disconnects. */
  hang?: 'early' | 'late';
  /** Drops the connection before the headers or after the last chunk. */
  drop?: 'early' | 'late';
  /** Raw response body, one write each. */
  raw?: readonly (string | Uint8Array)[];
  contentType?: string;
  handle?: (response: ServerResponse, request: RecordedRequest) => void;
}

export interface RecordedRequest {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies field by field
  body: any;
  /** Resolves at the end of the exchange: whether the client disconnected early. */
  isLeft: Promise<boolean>;
}

/** An OpenAI-compatible server on loopback: `/v1/models`, `/v1/chat/completions`, `/v1/embeddings`. */
export interface ModelServer extends AsyncDisposable {
  /** Includes `/v1`. */
  baseUrl: string;
  models: (string | object | null)[];
  /** All recorded requests, oldest first. */
  requests: RecordedRequest[];
  /** Requests to one path below `/v1`, such as `/chat/completions`. */
  asked(path: string): RecordedRequest[];
  /** Resolves with the request of that number, starting at 1. */
  request(path: string, number: number): Promise<RecordedRequest>;
  /** Queues one turn for each of the next requests to `/chat/completions`. */
  chat(...turns: ServerTurn[]): void;
  /** The same for `/embeddings`; only faults of a turn are used. */
  embed(...turns: ServerTurn[]): void;
  listing(...turns: ServerTurn[]): void;
  /** Fields of a chat request that are rejected with 400, such as `stream_options`. */
  refused: Set<string>;
  apiKey: string | null;
  /** Embedding dimensions. Default 8. */
  dimensions: number;
  beforeChat: () => Promise<void>;
}

export async function startModelServer(): Promise<ModelServer> {
  const queues = new Map<string, ServerTurn[]>();
  const arrivals = new Set<() => void>();
  const put = (path: string, turns: ServerTurn[]) => queues.set(path, [...(queues.get(path) ?? []), ...turns]);
  const http = createServer((request, response) => {
    void receive(request, response).then((recorded) => {
      model.requests.push(recorded);
      for (const look of [...arrivals]) look();
      const turn = queues.get(recorded.path)?.shift() ?? {};
      answer(model, { recorded, turn, response }).catch(() => response.destroy());
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');

  const model: ModelServer = {
    baseUrl: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`,
    models: ['tiny-1.0'],
    requests: [],
    refused: new Set(),
    apiKey: null,
    dimensions: 8,
    beforeChat: async () => {},
    asked: (path) => model.requests.filter((request) => request.path === path),
    chat: (...turns) => void put('/chat/completions', turns),
    embed: (...turns) => void put('/embeddings', turns),
    listing: (...turns) => void put('/models', turns),
    async request(path, number) {
      const found = Promise.withResolvers<RecordedRequest>();
      const look = () => {
        const request = model.asked(path)[number - 1];
        if (request !== undefined) found.resolve(request);
      };
      arrivals.add(look);
      look();
      return await found.promise.finally(() => arrivals.delete(look));
    },
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return model;
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<RecordedRequest> {
  const left = Promise.withResolvers<boolean>();
  response.on('close', () => left.resolve(!response.writableFinished));
  const sent = await text(request).catch(() => '');
  return {
    method: request.method ?? '',
    path: (request.url ?? '').replace(/^\/v1/, '').replace(/\?.*$/, ''),
    headers: request.headers,
    body: sent === '' ? null : JSON.parse(sent),
    isLeft: left.promise,
  };
}

interface Exchange {
  recorded: RecordedRequest;
  turn: ServerTurn;
  response: ServerResponse;
}

async function answer(server: ModelServer, exchange: Exchange): Promise<void> {
  const { recorded, turn, response } = exchange;
  if (recorded.path === '/chat/completions') await server.beforeChat();
  if (server.apiKey !== null && recorded.headers.authorization !== `Bearer ${server.apiKey}`) {
    return refuse(response, 401, { message: 'Incorrect API key provided.', code: 'invalid_api_key' });
  }
  if (turn.handle !== undefined) return turn.handle(response, recorded);
  if (turn.hang === 'early') return;
  if (turn.drop === 'early') return void response.destroy();
  if (turn.raw !== undefined) return sendRaw(response, turn);
  if (turn.status !== undefined) return refuse(response, turn.status, turn.error ?? {}, turn.headers);
  switch (`${recorded.method} ${recorded.path}`) {
    case 'GET /models':
      return json(response, 200, { object: 'list', data: server.models.map(entryOf) });
    case 'POST /embeddings':
      return embeddings(server, exchange);
    case 'POST /chat/completions': {
      const field = [...server.refused].find((name) => hasField(recorded.body, name));
      if (field !== undefined) {
        const message = `Unsupported parameter: '${field}'`;
        return refuse(response, 400, { message, type: 'invalid_request_error', param: field });
      }
      return await (recorded.body.stream ? streamed(exchange) : whole(exchange));
    }
    default:
      return refuse(response, 404, { message: 'Not Found' });
  }
}

/** Tests `field`, or `field=type` for `response_format.type`, such as `response_format=json_schema`. */
function hasField(body: Record<string, unknown>, name: string): boolean {
  const [field = '', value] = name.split('=');
  if (value === undefined) return field in body;
  const { type } = (body[field] ?? {}) as { type?: unknown };
  return type === value;
}

function entryOf(model: string | object | null) {
  return typeof model === 'string' ? { id: model, object: 'model', created: 1_767_225_600, owned_by: 'test' } : model;
}

async function streamed({ recorded, turn, response }: Exchange): Promise<void> {
  response.writeHead(200, { 'content-type': turn.contentType ?? 'text/event-stream' });
  const { model, stream_options: options } = recorded.body;
  const envelope = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_767_225_600, model };
  const chunks: object[] = deltasOf(recorded, turn).map((delta, position) => {
    // The first chunk has only the role.
    const content = turn.logprobs?.[position - 1];
    const logprobs = content === undefined ? {} : { logprobs: { content, refusal: null } };
    return { ...envelope, choices: [{ index: 0, delta, ...logprobs, finish_reason: null }] };
  });
  const reason = finishReasonOf(turn);
  if (reason !== null && turn.hang === undefined && turn.drop === undefined) {
    chunks.push({ ...envelope, choices: [{ index: 0, delta: {}, finish_reason: reason }] });
    if (options?.include_usage && turn.usage !== null) chunks.push({ ...envelope, choices: [], usage: usageOf(turn) });
  }
  for (const [index, chunk] of chunks.entries()) {
    await turn.before?.(index);
    if (!response.write(`data: ${JSON.stringify(chunk)}\n\n`)) await once(response, 'drain');
  }
  if (turn.hang === 'late') return;
  if (turn.drop === 'late') return void response.destroy();
  response.end('data: [DONE]\n\n');
}

async function whole({ recorded, turn, response }: Exchange): Promise<void> {
  await turn.before?.(0);
  if (turn.hang === 'late') return;
  const { toolCalls = [], reasoning, reasoningField = 'reasoning_content' } = turn;
  const calls = toolCalls.map(({ id, ...fn }) => ({ id, type: 'function', function: fn }));
  const message = {
    role: 'assistant',
    content: calls.length > 0 && turn.text === undefined ? null : piecesOf(recorded, turn).join(''),
    ...(reasoning !== undefined && { [reasoningField]: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  json(response, 200, {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_767_225_600,
    model: recorded.body.model,
    choices: [{ index: 0, message, finish_reason: finishReasonOf(turn) }],
    ...(turn.usage !== null && { usage: usageOf(turn) }),
  });
}

function deltasOf(recorded: RecordedRequest, turn: ServerTurn): object[] {
  const { reasoning, reasoningField = 'reasoning_content', toolCalls = [] } = turn;
  const deltas: object[] = [{ role: 'assistant', content: '' }];
  if (reasoning !== undefined) deltas.push({ [reasoningField]: reasoning });
  if (toolCalls.length === 0 || turn.text !== undefined) {
    deltas.push(...piecesOf(recorded, turn).map((content) => ({ content })));
  }
  for (const [index, { id, name, arguments: written }] of toolCalls.entries()) {
    const middle = Math.floor(written.length / 2);
    const first = { index, id, type: 'function', function: { name, arguments: written.slice(0, middle) } };
    deltas.push({ tool_calls: [first] }, { tool_calls: [{ index, function: { arguments: written.slice(middle) } }] });
  }
  return deltas;
}

function piecesOf({ body }: RecordedRequest, { text: pieces }: ServerTurn): readonly string[] {
  if (pieces !== undefined) return [pieces].flat();
  const said = body.messages?.findLast(({ role }: { role: string }) => role === 'user')?.content ?? '';
  return [`You said: ${typeof said === 'string' ? said : JSON.stringify(said)}`];
}

function finishReasonOf({ finishReason, toolCalls = [] }: ServerTurn): string | null {
  return finishReason === undefined ? (toolCalls.length > 0 ? 'tool_calls' : 'stop') : finishReason;
}

function usageOf({ usage }: ServerTurn) {
  const { prompt_tokens, completion_tokens } = usage ?? { prompt_tokens: 7, completion_tokens: 3 };
  return { prompt_tokens, completion_tokens, total_tokens: Number(prompt_tokens) + Number(completion_tokens) };
}

/** Deterministic unit vectors. */
function embeddings(server: ModelServer, { recorded, turn, response }: Exchange): void {
  const { input, model, encoding_format: format } = recorded.body;
  const data = [input].flat().map((content: unknown, index: number) => {
    const vector = vectorOf(String(content), server.dimensions);
    const embedding = format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
    return { object: 'embedding', index, embedding };
  });
  const usage = turn.usage === null ? {} : { usage: { prompt_tokens: data.length, total_tokens: data.length } };
  json(response, 200, { object: 'list', model, data, ...usage });
}

function vectorOf(content: string, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  for (let at = 0; at < dimensions; at++) {
    vector[at] = createHash('sha256').update(`${at} ${content}`).digest().readInt32LE(0) / 2 ** 31;
  }
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, status: number, error: unknown, headers: Record<string, string> = {}): void {
  json(response, status, { error }, headers);
}

function sendRaw(
  response: ServerResponse,
  { raw = [], contentType = 'text/event-stream', status = 200, hang }: ServerTurn,
) {
  response.writeHead(status, { 'content-type': contentType });
  for (const piece of raw) response.write(piece);
  if (hang === undefined) response.end();
}
