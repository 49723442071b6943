/**
 * Messages over a pipe: a JSON head and a body of bytes, such as samples. The lengths of both precede them, 32 bits in
 * the byte order of this machine, which both ends share. Lengths are limited, because the other end is not trusted.
 */

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export interface Message {
  head: unknown;
  body: Buffer;
}

export interface FrameLimits {
  headBytes: number;
  bodyBytes: number;
}

export const FRAME_LIMITS: FrameLimits = { headBytes: 1024 * 1024, bodyBytes: 1024 * 1024 };

export class FrameError extends Error {
  override readonly name = 'FrameError';
}

const LENGTHS_BYTES = 8;
const NO_BODY = Buffer.alloc(0);

/** Chunks to write, in order. @throws RangeError if a part is too long */
export function encodeMessage(head: JsonValue, body: Uint8Array = NO_BODY, limits = FRAME_LIMITS): Buffer[] {
  const text = JSON.stringify(head);
  const headBytes = Buffer.byteLength(text);
  if (headBytes > limits.headBytes) throw new RangeError('the head of a message is too long');
  if (body.byteLength > limits.bodyBytes) throw new RangeError('the body of a message is too long');
  const start = Buffer.allocUnsafe(LENGTHS_BYTES + headBytes);
  start.writeUInt32LE(headBytes, 0);
  start.writeUInt32LE(body.byteLength, 4);
  start.write(text, LENGTHS_BYTES);
  return body.byteLength === 0 ? [start] : [start, Buffer.from(body.buffer, body.byteOffset, body.byteLength)];
}

/** Ends with the stream, even inside a message. @throws FrameError */
export async function* readMessages(
  chunks: AsyncIterable<Buffer>,
  limits = FRAME_LIMITS,
): AsyncGenerator<Message, void> {
  let parts: Buffer[] = [];
  let partBytes = 0;
  let wantedBytes = LENGTHS_BYTES;
  for await (const chunk of chunks) {
    parts.push(chunk);
    partBytes += chunk.byteLength;
    // Chunks are joined only once a message is complete, so a long one is copied once.
    if (partBytes < wantedBytes) continue;
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts);
    for (;;) {
      wantedBytes = messageBytes(rest, limits);
      if (rest.byteLength < wantedBytes) break;
      yield decodeMessage(rest);
      rest = rest.subarray(wantedBytes);
    }
    parts = [rest];
    partBytes = rest.byteLength;
  }
}

/** Length of the message, or of its length fields until they are complete. */
function messageBytes(bytes: Buffer, limits: FrameLimits): number {
  if (bytes.byteLength < LENGTHS_BYTES) return LENGTHS_BYTES;
  const headBytes = bytes.readUInt32LE(0);
  const bodyBytes = bytes.readUInt32LE(4);
  if (headBytes > limits.headBytes || bodyBytes > limits.bodyBytes) throw new FrameError('a message is too long');
  return LENGTHS_BYTES + headBytes + bodyBytes;
}

function decodeMessage(bytes: Buffer): Message {
  const bodyStart = LENGTHS_BYTES + bytes.readUInt32LE(0);
  const body = bytes.subarray(bodyStart, bodyStart + bytes.readUInt32LE(4));
  try {
    return { head: JSON.parse(bytes.toString('utf8', LENGTHS_BYTES, bodyStart)), body };
  } catch (error) {
    throw new FrameError('the head of a message is not JSON', { cause: error });
  }
}
