import { SipParseError } from './parse-error.ts';
import { MAX_HEADER_BYTES, MAX_MESSAGE_BYTES } from './parse-message.ts';

export type StreamFrame =
  | { type: 'message'; bytes: Buffer }
  /** A double CRLF between messages, to be answered with one CRLF (RFC 5626 §3.5.1). */
  | { type: 'ping' };

/**
 * Splits a TCP stream into messages by Content-Length (RFC 3261 §18.3); a message without one has no body. Holds at
 * most one message of `MAX_MESSAGE_BYTES` and one slice of input. After a throw, close the stream.
 */
export class StreamFramer {
  #buffer: Buffer = Buffer.allocUnsafe(4096);
  /** Unread bytes are `#start` to `#end`. */
  #start = 0;
  #end = 0;
  /** Unread bytes already searched for the end of the head, so that single bytes cost no more than a block. */
  #searched = 0;
  /** Length of the message at `#start` once its head is complete, else -1. */
  #messageLength = -1;

  /** Whether a message is incomplete. A lone CRLF does not start one. */
  get isInMessage(): boolean {
    const first = this.#buffer[this.#start];
    return this.#messageLength !== -1 || (this.#end > this.#start && first !== CR && first !== LF);
  }

  /** @throws SipParseError `TOO_LARGE`, `NOT_SIP` or `BAD_CONTENT_LENGTH`. */
  push(chunk: Buffer): StreamFrame[] {
    const frames: StreamFrame[] = [];
    // Slices prevent a huge buffer for a huge chunk of small messages.
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      this.#append(chunk.subarray(at, at + SLICE_BYTES));
      for (let frame = this.#next(); frame !== null; frame = this.#next()) frames.push(frame);
    }
    return frames;
  }

  #next(): StreamFrame | null {
    if (this.#messageLength === -1) {
      const between = this.#skipLineEnds();
      if (between === 'ping') return { type: 'ping' };
      if (between === 'wait' || !this.#findHead()) return null;
    }
    if (this.#end - this.#start < this.#messageLength) return null;
    const bytes = Buffer.from(this.#buffer.subarray(this.#start, this.#start + this.#messageLength));
    this.#drop(this.#messageLength);
    return { type: 'message', bytes };
  }

  /** A single CRLF may be half a ping, so it stays until more bytes follow. */
  #skipLineEnds(): 'ping' | 'wait' | 'message' {
    const unread = this.#buffer.subarray(this.#start, Math.min(this.#end, this.#start + 4));
    for (let at = 0; at < 4; at++) {
      const byte = unread[at];
      if (byte === undefined) return 'wait';
      if (byte === (at % 2 === 0 ? CR : LF)) continue;
      // A lone CR stays, and the parser of the head rejects it.
      this.#drop(at === 2 || at === 3 ? 2 : 0);
      return 'message';
    }
    this.#drop(4);
    return 'ping';
  }

  #findHead(): boolean {
    const unread = this.#buffer.subarray(this.#start, this.#end);
    const first = unread[0];
    if (first === undefined) return false;
    if (first < 0x21 || first > 0x7e) throw new SipParseError('NOT_SIP', 'The stream does not hold SIP');
    const headLength = unread.indexOf('\r\n\r\n', Math.max(0, this.#searched - 3), 'latin1');
    this.#searched = unread.length;
    if ((headLength === -1 ? unread.length : headLength) > MAX_HEADER_BYTES) {
      throw new SipParseError('TOO_LARGE', 'The header is too large');
    }
    if (headLength === -1) return false;
    const messageLength = headLength + 4 + contentLengthOf(unread.toString('latin1', 0, headLength));
    if (messageLength > MAX_MESSAGE_BYTES) throw new SipParseError('TOO_LARGE', 'The message is too large');
    this.#messageLength = messageLength;
    return true;
  }

  #append(chunk: Buffer): void {
    const unread = this.#end - this.#start;
    if (this.#end + chunk.length > this.#buffer.length) {
      const needed = unread + chunk.length;
      const target = needed > this.#buffer.length ? Buffer.allocUnsafe(needed * 2) : this.#buffer;
      this.#buffer.copy(target, 0, this.#start, this.#end);
      this.#buffer = target;
      this.#start = 0;
      this.#end = unread;
    }
    chunk.copy(this.#buffer, this.#end);
    this.#end += chunk.length;
  }

  #drop(byteCount: number): void {
    this.#start += byteCount;
    if (this.#start === this.#end) {
      // Releases the buffer of one large message on an idle connection.
      if (this.#buffer.length > SLICE_BYTES) this.#buffer = Buffer.allocUnsafe(4096);
      this.#start = 0;
      this.#end = 0;
    }
    this.#searched = 0;
    this.#messageLength = -1;
  }
}

function contentLengthOf(head: string): number {
  const values = Array.from(head.replace(/\r\n[ \t]+/g, ' ').matchAll(CONTENT_LENGTH), (match) => match[1]?.trim());
  const [value] = values;
  if (value === undefined) return 0;
  if (values.length > 1 || !/^\d{1,7}$/.test(value)) {
    throw new SipParseError('BAD_CONTENT_LENGTH', 'Content-Length is not one number');
  }
  return Number(value);
}

const CR = 0x0d;
const LF = 0x0a;
const SLICE_BYTES = 65_536;
const CONTENT_LENGTH = /\r\n(?:content-length|l)[ \t]*:([^\r\n]*)/gi;
