/**
 * Messages over a pipe: JSON, preceded by its length in bytes as 32 bits, least significant first. The length is
 * bounded: the other end is not trusted.
 */

export const MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

/** The other end did not keep to the protocol. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

const LENGTH_BYTES = 4;

/** @throws RangeError when it is too long */
export function encodeMessage(message: object): Buffer {
  const text = JSON.stringify(message);
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_MESSAGE_BYTES) throw new RangeError('the message is too long');
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + bytes);
  frame.writeUInt32LE(bytes, 0);
  frame.write(text, LENGTH_BYTES);
  return frame;
}

/** Ends when the stream does, also in the middle of a message: whoever broke off is gone. @throws FrameError */
export async function* readMessages(chunks: AsyncIterable<Buffer>): AsyncGenerator<unknown, void> {
  let parts: Buffer[] = [];
  let partBytes = 0;
  let wantedBytes = LENGTH_BYTES;
  for await (const chunk of chunks) {
    parts.push(chunk);
    partBytes += chunk.byteLength;
    // Joined only once a whole message is there: a long one in many chunks is not copied again for each.
    if (partBytes < wantedBytes) continue;
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts);
    for (;;) {
      wantedBytes = frameBytes(rest);
      if (rest.byteLength < wantedBytes) break;
      yield decodeMessage(rest.subarray(LENGTH_BYTES, wantedBytes));
      rest = rest.subarray(wantedBytes);
      wantedBytes = LENGTH_BYTES;
      if (rest.byteLength < LENGTH_BYTES) break;
    }
    parts = [rest];
    partBytes = rest.byteLength;
  }
}

/** Of the frame that starts here, or of its length as long as that is not all here. */
function frameBytes(bytes: Buffer): number {
  if (bytes.byteLength < LENGTH_BYTES) return LENGTH_BYTES;
  const messageBytes = bytes.readUInt32LE(0);
  if (messageBytes > MOST_MESSAGE_BYTES) throw new FrameError('a message is too long');
  return LENGTH_BYTES + messageBytes;
}

function decodeMessage(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new FrameError('a message is not JSON', { cause: error });
  }
}
