import { canonicalHeaderName, headerKey } from './header-names.ts';
import { splitList } from './lexing.ts';

/** One header line. `key` is the lower-case long name (`v` and `VIA` are both `via`), `name` its spelling. */
export interface SipHeader {
  readonly key: string;
  readonly name: string;
  readonly value: string;
}

/**
 * A SIP request (RFC 3261 §7.1). `headers` never contains Content-Length: it is `body.length`, which the parser checks
 * and the serializer writes.
 */
export interface SipRequest {
  readonly kind: 'request';
  method: string;
  uri: string;
  headers: SipHeader[];
  body: Buffer;
}

/** A SIP response (RFC 3261 §7.2). For Content-Length see `SipRequest`. */
export interface SipResponse {
  readonly kind: 'response';
  statusCode: number;
  reasonPhrase: string;
  headers: SipHeader[];
  body: Buffer;
}

export type SipMessage = SipRequest | SipResponse;

const NO_BODY = Buffer.alloc(0);

export function createRequest(options: {
  method: string;
  uri: string;
  headers?: Iterable<readonly [name: string, value: string]>;
  body?: Buffer | string;
}): SipRequest {
  return {
    kind: 'request',
    method: options.method,
    uri: options.uri,
    headers: Array.from(options.headers ?? [], ([name, value]) => sipHeader(name, value)),
    body: bodyBytes(options.body),
  };
}

export function createResponse(options: {
  statusCode: number;
  reasonPhrase?: string;
  headers?: Iterable<readonly [name: string, value: string]>;
  body?: Buffer | string;
}): SipResponse {
  return {
    kind: 'response',
    statusCode: options.statusCode,
    reasonPhrase: options.reasonPhrase ?? '',
    headers: Array.from(options.headers ?? [], ([name, value]) => sipHeader(name, value)),
    body: bodyBytes(options.body),
  };
}

export function sipHeader(name: string, value: string): SipHeader {
  return { key: headerKey(name), name: canonicalHeaderName(name), value };
}

/** First value of a header, `undefined` if absent. For list headers (Via, Route, Contact, ...) the first element. */
export function header(message: SipMessage, name: string): string | undefined {
  const key = headerKey(name);
  for (const candidate of message.headers) {
    if (candidate.key !== key) continue;
    return LIST_HEADERS.has(key) ? (splitList(candidate.value)[0] ?? '') : candidate.value;
  }
  return undefined;
}

/**
 * All values of a header in order. Lines of list headers are split at commas (RFC 3261 §7.3.1). Others are one value
 * per line, because commas in WWW-Authenticate or Date do not separate values.
 */
export function headers(message: SipMessage, name: string): string[] {
  const key = headerKey(name);
  const values: string[] = [];
  for (const candidate of message.headers) {
    if (candidate.key !== key) continue;
    if (LIST_HEADERS.has(key)) values.push(...splitList(candidate.value));
    else values.push(candidate.value);
  }
  return values;
}

export function hasHeader(message: SipMessage, name: string): boolean {
  const key = headerKey(name);
  return message.headers.some((candidate) => candidate.key === key);
}

/** Replaces all lines of that name by one, in the place of the first, or appends it. */
export function setHeader(message: SipMessage, name: string, value: string): void {
  const replacement = sipHeader(name, value);
  const index = message.headers.findIndex((candidate) => candidate.key === replacement.key);
  if (index === -1) {
    message.headers.push(replacement);
    return;
  }
  message.headers = message.headers.filter((candidate, at) => at <= index || candidate.key !== replacement.key);
  message.headers[index] = replacement;
}

export function appendHeader(message: SipMessage, name: string, value: string): void {
  message.headers.push(sipHeader(name, value));
}

export function removeHeader(message: SipMessage, name: string): void {
  const key = headerKey(name);
  message.headers = message.headers.filter((candidate) => candidate.key !== key);
}

function bodyBytes(body: Buffer | string | undefined): Buffer {
  if (body === undefined) return NO_BODY;
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}

const LIST_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'alert-info',
  'allow',
  'allow-events',
  'call-info',
  'contact',
  'content-encoding',
  'content-language',
  'diversion',
  'error-info',
  'history-info',
  'in-reply-to',
  'p-asserted-identity',
  'p-preferred-identity',
  'path',
  'proxy-require',
  'reason',
  'record-route',
  'require',
  'route',
  'security-client',
  'security-server',
  'security-verify',
  'service-route',
  'supported',
  'unsupported',
  'via',
  'warning',
]);
