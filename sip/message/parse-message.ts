import { isUtf8 } from 'node:buffer';
import { headerKey } from './header-names.ts';
import { isToken, trimBlanks } from './lexing.ts';
import { SipParseError } from './parse-error.ts';
import { type SipHeader, type SipMessage, type SipRequest, sipHeader } from './sip-message.ts';

/** Limits of every message. */
export const MAX_HEADER_BYTES = 32_768;
export const MAX_HEADER_COUNT = 256;
export const MAX_MESSAGE_BYTES = 131_072;

/**
 * Parses one complete message: a datagram, or a frame of `StreamFramer`. Checks only syntax, not missing headers.
 * Ignores bytes after Content-Length (RFC 3261 §18.3). Headers that are not UTF-8 are decoded as Latin-1, because
 * carriers send such caller names. The body is a view into `bytes`. With `bodyIsRest`, for writers with wrong lengths,
 * it is everything that follows.
 *
 * @throws SipParseError, with `request` set if a malformed request can still be answered.
 */
export function parseMessage(bytes: Buffer, options: { bodyIsRest?: boolean } = {}): SipMessage {
  if (bytes.length > MAX_MESSAGE_BYTES) throw new SipParseError('TOO_LARGE', 'The message is too large');
  const head = endOfHead(bytes);
  if (head.end > MAX_HEADER_BYTES) throw new SipParseError('TOO_LARGE', 'The header is too large');
  const headBytes = bytes.subarray(0, head.end);
  const lines = unfold((isUtf8(headBytes) ? headBytes.toString('utf8') : headBytes.toString('latin1')).split(LINE_END));
  while (lines[0] === '') lines.shift();
  const startLine = lines.shift();
  if (startLine === undefined) throw new SipParseError('NOT_SIP', 'The message is empty');

  // Parse the whole head before rejecting: the response to a malformed request needs its Via and From.
  const parsed = parseHeaders(lines);
  const start = parseStartLine(startLine);
  const available = bytes.subarray(head.bodyStart);
  const length = (options.bodyIsRest ? null : parsed.contentLength) ?? available.length;
  const broken =
    ('error' in start ? start.error : null) ??
    parsed.error ??
    (length > available.length
      ? new SipParseError('BAD_CONTENT_LENGTH', 'Content-Length is more than what arrived')
      : null);
  if (!broken && !('error' in start)) return { ...start, headers: parsed.headers, body: available.subarray(0, length) };

  const method = 'error' in start ? start.method : start.kind === 'request' ? start.method : null;
  if (method === null || broken === null) throw broken ?? new SipParseError('NOT_SIP', 'The message is not SIP');
  const request: SipRequest = { kind: 'request', method, uri: '', headers: parsed.headers, body: Buffer.alloc(0) };
  throw new SipParseError(broken.code, broken.message, request);
}

type StartLine =
  | { kind: 'request'; method: string; uri: string }
  | { kind: 'response'; statusCode: number; reasonPhrase: string }
  /** `method` is set if the line is a request that can be answered. */
  | { error: SipParseError; method: string | null };

function parseStartLine(line: string): StartLine {
  const status = /^SIP\/(\d{1,3}\.\d{1,3}) {1,8}(\d{1,20})(?: (.*))?$/is.exec(line);
  if (status) {
    if (status[1] !== '2.0') {
      return { error: new SipParseError('BAD_VERSION', 'The SIP version of a response is not 2.0'), method: null };
    }
    const statusCode = Number(status[2]);
    if (status[2]?.length !== 3 || statusCode < 100 || statusCode > 699) {
      return { error: new SipParseError('BAD_STATUS_CODE', 'The status code is not 100 to 699'), method: null };
    }
    return { kind: 'response', statusCode, reasonPhrase: (status[3] ?? '').replace(STRAY_CONTROLS, ' ').trim() };
  }

  const match = /^(\S{1,64})[ \t](.*?)[ \t]SIP\/(\d{1,3}\.\d{1,3})([ \t]*)$/is.exec(line);
  const method = match?.[1];
  if (!match || method === undefined || !isToken(method)) {
    return {
      error: new SipParseError('NOT_SIP', 'The first line is neither a request nor a status line'),
      method: null,
    };
  }
  if (match[3] !== '2.0') return { error: new SipParseError('BAD_VERSION', 'The SIP version is not 2.0'), method };
  const uri = match[2] ?? '';
  if (uri === '' || /[\s<>"]/.test(uri)) {
    return { error: new SipParseError('BAD_START_LINE', 'The request URI holds white space or brackets'), method };
  }
  return { kind: 'request', method, uri };
}

interface ParsedHeaders {
  headers: SipHeader[];
  contentLength: number | null;
  error: SipParseError | null;
}

function parseHeaders(lines: readonly string[]): ParsedHeaders {
  const result: ParsedHeaders = { headers: [], contentLength: null, error: null };
  for (const line of lines) {
    if (line === '') break;
    if (result.headers.length >= MAX_HEADER_COUNT) {
      result.error ??= new SipParseError('TOO_LARGE', 'The message has too many headers');
      break;
    }
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trimEnd();
    if (!isToken(name)) {
      result.error ??= new SipParseError('BAD_HEADER', 'A header line has no name');
      continue;
    }
    // A stray CR or NUL must not leak into derived messages.
    const value = trimBlanks(line.slice(colon + 1).replace(STRAY_CONTROLS, ' '));
    if (headerKey(name) === 'content-length') readContentLength(value, result);
    else result.headers.push(sipHeader(name, value));
  }
  return result;
}

function readContentLength(value: string, result: ParsedHeaders): void {
  const length = /^\d{1,7}$/.test(value) ? Number(value) : null;
  // Two lengths allow request smuggling, so they are rejected even if equal.
  if (length === null || result.contentLength !== null) {
    result.error ??= new SipParseError('BAD_CONTENT_LENGTH', 'Content-Length is not one number');
    return;
  }
  result.contentLength = length;
}

/** Joins continuation lines, which start with white space (RFC 3261 §7.3.1). */
function unfold(lines: string[]): string[] {
  const whole: string[] = [];
  for (const line of lines) {
    if ((line.startsWith(' ') || line.startsWith('\t')) && whole.length > 0 && trimBlanks(line) !== '') {
      whole[whole.length - 1] += ` ${trimBlanks(line)}`;
    } else whole.push(line);
  }
  return whole;
}

function endOfHead(bytes: Buffer): { end: number; bodyStart: number } {
  // Skip keepalive line ends before the message.
  let start = 0;
  while (bytes[start] === 0x0d || bytes[start] === 0x0a) start++;
  const crlf = bytes.indexOf('\r\n\r\n', start, 'latin1');
  if (crlf !== -1) return { end: crlf, bodyStart: crlf + 4 };
  const lf = bytes.indexOf('\n\n', start, 'latin1');
  if (lf !== -1) return { end: lf, bodyStart: lf + 2 };
  return { end: bytes.length, bodyStart: bytes.length };
}

const LINE_END = /\r?\n/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is replaced
const STRAY_CONTROLS = /[\u0000\r]/g;
