import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { isIP } from 'node:net';
import { TandemError } from '../../machines/errors.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import type { CheckedUrl, CheckOptions } from './callback-url.ts';
import { checkCallbackUrl } from './callback-url.ts';

export interface SafePostOptions extends CheckOptions {
  url: string;
  /** Sent unchanged, as UTF-8. */
  body: string;
  headers: Record<string, string>;
  /** Timeout for name look-up, connecting, sending and the response together. Default 15 000. */
  timeoutMs?: number;
  /** PEM certificates to trust instead of the system's, for tests and private authorities. */
  ca?: string;
  /** Reads a response of up to this many bytes and fails for a longer one. Default: the response is discarded. */
  answerBytes?: number;
}

/** Reason that there is no status. `aborted` is ours, all others are the receiver's or the network's. */
export type PostFailure =
  | 'url_refused'
  | 'timeout'
  | 'connection_failed'
  | 'tls_failed'
  | 'protocol_error'
  | 'connection_lost'
  | 'aborted';

export type PostResult =
  /** `body`: UTF-8, if requested. */
  | { kind: 'answered'; status: number; retryAfter: string | null; body?: string }
  | { kind: 'failed'; failure: PostFailure; detail: string };

/**
 * Sends one POST to an untrusted URL. It resolves the name once, checks every address and connects to one of them, with
 * the name as SNI and Host. It follows no redirect, uses no proxy and keeps no connection. Without `answerBytes` it
 * discards the response after at most 16 kB; the status decides as soon as it arrives, even if the body never ends.
 * Never rejects.
 */
export async function safePost(options: SafePostOptions): Promise<PostResult> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, deadline.signal]) : deadline.signal;
  try {
    signal.throwIfAborted();
    // A slow name server may ignore the abort; the deadline still applies.
    const checked = await raceAbort(checkCallbackUrl(options.url, { ...options, signal }), signal);
    return await post(checked, { ...options, timeoutMs, signal });
  } catch (error) {
    if (options.signal?.aborted) return { kind: 'failed', failure: 'aborted', detail: 'aborted' };
    if (deadline.signal.aborted) return { kind: 'failed', failure: 'timeout', detail: 'timeout' };
    return failureOf(error);
  } finally {
    clearTimeout(timer);
  }
}

const DEFAULT_TIMEOUT_MS = 15_000;
const MAX_DISCARDED_BYTES = 16_384;

export interface PinnedRequest {
  method: 'GET' | 'POST';
  headers: Record<string, string | number>;
  /** PEM certificates to trust instead of the system's. */
  ca?: string | undefined;
  signal: AbortSignal;
  /** Timeout of the whole request, which the signal enforces. */
  timeoutMs: number;
}

/** Share of the timeout in which every address is tried. */
const CONNECTING_SHARE = 0.5;

/** Creates an unsent request that connects only to the checked addresses. */
export function requestTo({ url, hostname, addresses }: CheckedUrl, options: PinnedRequest): ClientRequest {
  const secure = url.protocol === 'https:';
  const request: RequestOptions = {
    method: options.method,
    protocol: url.protocol,
    host: hostname,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    headers: { ...options.headers, host: url.host },
    lookup: pinnedLookup(addresses),
    maxHeaderSize: 16_384,
    signal: options.signal,
  };
  // Node gives up an address after 250 ms if others follow, even one that is slow and the only reachable one.
  const autoSelectFamilyAttemptTimeout = Math.ceil((options.timeoutMs * CONNECTING_SHARE) / addresses.length);
  // A fresh agent shares no sockets and, unlike the global one, takes no proxy from the environment.
  const connecting = { keepAlive: false, autoSelectFamilyAttemptTimeout };
  if (!secure) return http.request({ ...request, agent: new http.Agent(connecting) });
  const agent = new https.Agent(connecting);
  const servername = isIP(hostname) === 0 ? hostname : '';
  return https.request({ ...request, agent, servername, ca: options.ca, rejectUnauthorized: true });
}

async function post(
  checked: CheckedUrl,
  options: SafePostOptions & Pick<PinnedRequest, 'timeoutMs' | 'signal'>,
): Promise<PostResult> {
  const { ca, timeoutMs, signal } = options;
  const body = Buffer.from(options.body, 'utf8');
  const headers = { ...options.headers, 'content-length': body.length };
  const client = requestTo(checked, { method: 'POST', headers, ca, signal, timeoutMs });
  const { promise, resolve, reject } = Promise.withResolvers<PostResult>();
  let answer: PostResult | null = null;
  // Once there is a status, errors of the body do not matter.
  client.on('error', (error) => (answer === null ? reject(error) : resolve(answer)));
  client.on('upgrade', (response, socket) => {
    socket.destroy();
    resolve(answerOf(response));
  });
  client.on('response', (response) => {
    const settled = answerOf(response);
    if (options.answerBytes !== undefined) {
      readAnswer(response, options.answerBytes).then((text) => resolve({ ...settled, body: text }), reject);
      return;
    }
    answer = settled;
    discard(response).then(
      () => resolve(settled),
      () => resolve(settled),
    );
  });
  client.on('close', () => {
    if (answer === null) reject(new Error('closed before an answer'));
  });
  client.end(body);
  try {
    return await promise;
  } finally {
    client.destroy();
  }
}

function answerOf(response: IncomingMessage): Extract<PostResult, { kind: 'answered' }> {
  return {
    kind: 'answered',
    status: response.statusCode ?? 0,
    retryAfter: response.headers['retry-after'] ?? null,
  };
}

async function readAnswer(response: IncomingMessage, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw Object.assign(new Error('the answer is too long'), { code: 'HPE_ANSWER_TOO_LONG' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Lets a receiver finish its response, within bounds. Destroying the request ends the loop too. */
async function discard(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_DISCARDED_BYTES) return;
  }
}

/** Returns the checked addresses for any name; Node tries them one after the other. */
function pinnedLookup(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, callback) => {
    const wanted = Number(options.family);
    const usable = wanted === 4 || wanted === 6 ? answers.filter((it) => it.family === wanted) : answers;
    const [first] = usable;
    if (options.all) callback(null, usable);
    else if (first) callback(null, first.address, first.family);
    else callback(Object.assign(new Error('no address of that family'), { code: 'ENOTFOUND' }), '', 0);
  };
}

/** Puts only codes into `detail`, because messages may contain addresses and parts of the response. */
export function failureOf(error: unknown): Extract<PostResult, { kind: 'failed' }> {
  if (error instanceof TandemError) return { kind: 'failed', failure: 'url_refused', detail: error.code };
  const code = codeOf(error);
  if (code.startsWith('HPE_')) return { kind: 'failed', failure: 'protocol_error', detail: code };
  if (CONNECTION_CODES.has(code)) return { kind: 'failed', failure: 'connection_failed', detail: code };
  if (isTlsCode(code)) return { kind: 'failed', failure: 'tls_failed', detail: code };
  return { kind: 'failed', failure: 'connection_lost', detail: code };
}

const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EADDRNOTAVAIL',
  'EHOSTDOWN',
  'EACCES',
  'EPERM',
]);

function isTlsCode(code: string): boolean {
  return /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/.test(
    code,
  );
}

function codeOf(error: unknown): string {
  // Happy eyeballs reports the failures of all addresses as one.
  const one = error instanceof AggregateError ? error.errors[0] : error;
  const code = (one as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'UNKNOWN';
}
