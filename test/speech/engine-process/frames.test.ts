import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  encodeMessage,
  FrameError,
  type Message,
  MOST_BODY_BYTES,
  MOST_HEAD_BYTES,
  readMessages,
} from '../../../speech/engine-process/frames.ts';
import * as fc from '../../properties.ts';

describe('messages over a pipe', () => {
  it('arrive whole and in order however the pipe cuts them', async () => {
    const message = fc.record({
      head: fc.jsonValue({ noUnicodeString: false }),
      body: fc.uint8Array({ maxLength: 300 }),
    });
    const cuts = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(fc.array(message), cuts, async (messages, sizes) => {
        const sent = messages.map(({ head, body }) => ({ head: JSON.parse(JSON.stringify(head)), body: [...body] }));
        const bytes = Buffer.concat(sent.flatMap(({ head, body }) => encodeMessage(head, Uint8Array.from(body))));
        const received = await readAll(inPieces(bytes, sizes));
        expect(received.map(({ head, body }) => ({ head, body: [...body] }))).toEqual(sent);
      }),
    );
  });

  it('of the greatest length arrive whole', async () => {
    const longest = new Uint8Array(MOST_BODY_BYTES).fill(7);
    const [message] = await readAll(inPieces(Buffer.concat(encodeMessage(null, longest)), [4096]));
    expect(message?.body.equals(longest)).toBe(true);
  });

  it('that are too long are not sent', () => {
    expect(() => encodeMessage(null, new Uint8Array(MOST_BODY_BYTES + 1))).toThrow(RangeError);
    expect(() => encodeMessage('a'.repeat(MOST_HEAD_BYTES))).toThrow(RangeError);
  });

  it('that claim to be too long or have no JSON are refused', async () => {
    for (const lengths of [
      [MOST_HEAD_BYTES + 1, 0],
      [0, MOST_BODY_BYTES + 1],
      [0, 0],
    ]) {
      await expect(readAll(inPieces(Buffer.from(Uint32Array.from(lengths).buffer), [3]))).rejects.toThrow(FrameError);
    }
  });

  it('that break off are as if they never began', async () => {
    const bytes = Buffer.concat([...encodeMessage('whole'), ...encodeMessage('broken off')]);
    const received = await readAll(inPieces(bytes.subarray(0, -1), [5]));
    expect(received.map(({ head }) => head)).toEqual(['whole']);
  });
});

async function readAll(chunks: AsyncIterable<Buffer>): Promise<Message[]> {
  const messages: Message[] = [];
  for await (const message of readMessages(chunks)) messages.push(message);
  return messages;
}

/** In pieces of these sizes, over and over. */
function inPieces(bytes: Buffer, sizes: readonly number[]): AsyncIterable<Buffer> {
  const pieces: Buffer[] = [];
  for (let start = 0, index = 0; start < bytes.byteLength; index++) {
    const end = start + sizes[index % sizes.length]!;
    pieces.push(bytes.subarray(start, end));
    start = end;
  }
  return Readable.from(pieces);
}
