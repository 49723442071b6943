import { CommandError } from './command.ts';
import { type UploadOptions, uploadFile } from './upload-file.ts';

/** The command line's API client. It uses only HTTP, as any integrator would. */
export interface Api {
  readonly url: string;
  get<T>(path: string): Promise<T>;
  file(path: string): Promise<Buffer>;
  post<T>(path: string, body?: unknown): Promise<T>;
  patch<T>(path: string, body: unknown): Promise<T>;
  put<T>(path: string, body: unknown): Promise<T>;
  delete<T>(path: string): Promise<T>;
  /** Posts a form with a file; the response has no envelope. */
  upload<T>(path: string, upload: Pick<UploadOptions, 'filePath' | 'fileField' | 'fields' | 'onProgress'>): Promise<T>;
  /** Streams a call's events after that sequence number, until the terminal event or the server ends the stream. */
  events(callId: string, options?: { afterSequence?: number; signal?: AbortSignal }): AsyncGenerator<CallEvent>;
  /** Streams a response that has one JSON document per line. */
  lines<T>(path: string, body: unknown): AsyncGenerator<T>;
  /** Streams a response of Server-Sent Events with JSON. Throws if it ends without `[DONE]`. */
  frames<T>(path: string, body: unknown): AsyncGenerator<T>;
}

export interface CallEvent {
  sequence: number;
  event: string;
  state: string;
  leg: string | null;
  sip_status: number | null;
  hangup_cause: string | null;
  at: string;
  detail: string | null;
  /** Such as `{ digit }` with a `dtmf.received`. */
  data: Record<string, unknown> | null;
  /** Set on `transcript.final`. */
  transcript: { text: string; start: number; end: number; confidence: number | null } | null;
}

/**
 * Adds three codes to those of the API: `UNREACHABLE` without a server, `BROKEN_OFF` if the connection is lost during the
 * answer, `UNEXPECTED_ANSWER` if it is not a Tandem server.
 */
export class ApiError extends CommandError {
  override readonly name = 'ApiError';
  /** HTTP status; null without a response. */
  readonly status: number | null;

  constructor(
    code: string,
    message: string,
    { status = null, cause }: { status?: number | null; cause?: unknown } = {},
  ) {
    super(code, message, { cause });
    this.status = status;
  }
}

export function apiClient({ url, apiKey }: { url: string; apiKey: string }): Api {
  const authorization = `Bearer ${apiKey}`;

  async function send(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    try {
      return await fetch(url + path, { ...init, headers: { authorization, ...init.headers } });
    } catch (error) {
      throw unreachable(url, error);
    }
  }

  async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await send(path, {
      method,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const answer = parseAnswer<T>(await response.text().catch(refuseBroken));
    if (response.ok && answer?.data !== undefined) return answer.data;
    throw refusal(response, { answer, request: `${method} ${path}` });
  }

  return {
    url,
    get: (path) => ask('GET', path),
    async file(path) {
      const response = await send(path);
      if (response.ok) return Buffer.from(await response.arrayBuffer().catch(refuseBroken));
      throw refusal(response, { answer: await readAnswer(response), request: `GET ${path}` });
    },
    post: (path, body) => ask('POST', path, body),
    patch: (path, body) => ask('PATCH', path, body),
    put: (path, body) => ask('PUT', path, body),
    delete: (path) => ask('DELETE', path),
    async upload<T>(path: string, upload: Pick<UploadOptions, 'filePath' | 'fileField' | 'fields' | 'onProgress'>) {
      const sent = { ...upload, url: new URL(url + path), headers: { authorization } };
      const { status, text } = await uploadFile(sent).catch((error: unknown) => {
        throw error instanceof CommandError ? error : unreachable(url, { cause: error });
      });
      const answer = parseAnswer(text);
      if (status >= 200 && status < 300 && answer !== null) return answer as T;
      throw refusal({ status, url }, { answer, request: `POST ${path}` });
    },
    async *events(callId, { afterSequence = 0, signal } = {}) {
      const path = `/dialer/click2call/${encodeURIComponent(callId)}/stream`;
      const headers = { 'last-event-id': String(afterSequence) };
      const response = await send(path, { headers, ...(signal && { signal }) });
      // No events follow the terminal one.
      if (response.status === 204) return;
      if (!response.ok || !response.body) {
        throw refusal(response, { answer: await readAnswer(response), request: `GET ${path}` });
      }
      for await (const data of eventData(unbroken(response.body, url))) yield JSON.parse(data) as CallEvent;
    },
    async *lines<T>(path: string, body: unknown) {
      for await (const line of separated(await postForStream(path, body), '\n')) yield JSON.parse(line) as T;
    },
    async *frames<T>(path: string, body: unknown) {
      for await (const data of eventData(await postForStream(path, body))) {
        if (data === '[DONE]') return;
        yield JSON.parse(data) as T;
      }
      throw brokenOff(url);
    },
  };

  function refuseBroken(cause: unknown): never {
    throw brokenOff(url, cause);
  }

  async function postForStream(path: string, body: unknown): Promise<Body> {
    const response = await send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.ok && response.body) return unbroken(response.body, url);
    throw refusal(response, { answer: await readAnswer(response), request: `POST ${path}` });
  }
}

type Body = AsyncGenerator<Uint8Array<ArrayBuffer>>;

/** @throws ApiError BROKEN_OFF if the connection is lost */
export async function* unbroken(body: ReadableStream<Uint8Array<ArrayBuffer>>, url: string): Body {
  try {
    yield* body;
  } catch (error) {
    throw brokenOff(url, error);
  }
}

function brokenOff(url: string, cause?: unknown): ApiError {
  return new ApiError('BROKEN_OFF', `the answer of ${new URL(url).origin} was broken off: try again.`, { cause });
}

async function* eventData(body: Body): AsyncGenerator<string> {
  for await (const block of separated(body, '\n\n')) {
    const data = block.split('\n').find((line) => line.startsWith('data:'));
    if (data) yield data.slice(5).trim();
  }
}

/** Yields the blocks of a text that end with the separator. Drops an incomplete last block. */
async function* separated(body: Body, separator: string): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split(separator);
    text = blocks.pop() ?? '';
    yield* blocks;
  }
}

interface Answer<T> {
  data?: T;
  code?: string;
  message?: string;
}

/** Null if it is not JSON. */
async function readAnswer<T>(response: Response): Promise<Answer<T> | null> {
  return parseAnswer(await response.text().catch(() => ''));
}

function parseAnswer<T>(text: string): Answer<T> | null {
  try {
    return JSON.parse(text) as Answer<T>;
  } catch {
    return null;
  }
}

function refusal(
  { status, url }: Pick<Response, 'status' | 'url'>,
  { answer, request }: { answer: Answer<unknown> | null; request: string },
): ApiError {
  if (answer?.message === undefined) {
    const message = `${new URL(url).origin} answered ${status} to ${request}, not as a Tandem would: check TANDEM_URL.`;
    return new ApiError('UNEXPECTED_ANSWER', message, { status });
  }
  const { message, code = 'UNEXPECTED_ANSWER' } = answer;
  return new ApiError(code, `${message} (${code}, ${status} to ${request})`, { status });
}

function unreachable(url: string, cause: unknown): ApiError {
  const reason = (cause as { cause?: { code?: string } }).cause?.code ?? (cause as Error).message;
  const message = `no server answers at ${url} (${reason}): start it with tandem serve, or set TANDEM_URL.`;
  return new ApiError('UNREACHABLE', message, { cause });
}
