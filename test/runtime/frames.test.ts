import { describe, expect, it } from 'vitest';
import {
  encodeMessage,
  FRAME_LIMITS,
  FrameError,
  type FrameLimits,
  type Message,
  readMessages,
} from '../../runtime/frames.ts';
import * as fc from '../properties.ts';

const { headBytes, bodyBytes } = FRAME_LIMITS;
const cuts = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 });

describe('messages over a pipe', () => {
  it('arrive whole and in order however the pipe cuts them', async () => {
    const message = fc.record({
      head: fc.jsonValue({ noUnicodeString: false }),
      body: fc.uint8Array({ maxLength: 300 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(message), cuts, async (messages, sizes) => {
        const sent = messages.map(({ head, body }) => ({ head: JSON.parse(JSON.stringify(head)), body: [...body] }));
        const bytes = Buffer.concat(sent.flatMap(({ head, body }) => encodeMessage(head, Uint8Array.from(body))));
        const received = await readAll(inPieces(bytes, sizes));
        expect(received.map(({ head, body }) => ({ head, body: [...body] }))).toEqual(sent);
      }),
    );
  });

  it('replace a lone surrogate, which has no UTF-8', async () => {
    const text = fc.string({ unit: 'binary' });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ type: text, text })), cuts, async (sent, sizes) => {
        const bytes = Buffer.concat(sent.flatMap((message) => encodeMessage(message)));
        const expected = sent.map((message) => JSON.parse(Buffer.from(JSON.stringify(message)).toString()));
        expect((await readAll(inPieces(bytes, sizes))).map(({ head }) => head)).toEqual(expected);
      }),
    );
  });

  it('of the greatest length arrive whole', async () => {
    const longest = new Uint8Array(bodyBytes).fill(7);
    const [message] = await readAll(inPieces(Buffer.concat(encodeMessage(null, longest)), [4096]));
    expect(message?.body.equals(longest)).toBe(true);
  });

  it('that are too long are not sent', () => {
    expect(() => encodeMessage(null, new Uint8Array(bodyBytes + 1))).toThrow(RangeError);
    expect(() => encodeMessage('a'.repeat(headBytes))).toThrow(RangeError);
  });

  it('that claim to be too long or have no JSON are refused', async () => {
    for (const lengths of [
      [headBytes + 1, 0],
      [0, bodyBytes + 1],
      [0, 0],
    ]) {
      await expect(readAll(inPieces(Buffer.from(Uint32Array.from(lengths).buffer), [3]))).rejects.toThrow(FrameError);
    }
  });

  it('may be as long as the two ends agree', async () => {
    const limits: FrameLimits = { headBytes: 100, bodyBytes: 0 };
    const head = 'a'.repeat(98);
    expect(await readAll(inPieces(Buffer.concat(encodeMessage(head, undefined, limits)), [7]), limits)).toMatchObject([
      { head },
    ]);
    expect(() => encodeMessage(`${head}a`, undefined, limits)).toThrow(RangeError);
    expect(() => encodeMessage(head, new Uint8Array(1), limits)).toThrow(RangeError);
    const longer = Buffer.concat(encodeMessage(`${head}a`));
    await expect(readAll(inPieces(longer.subarray(0, 8), [8]), limits)).rejects.toThrow(FrameError);
  });

  it('that break off are as if they never began', async () => {
    const last = Buffer.concat(encodeMessage('broken off', Buffer.from('body')));
    for (let end = 0; end < last.byteLength; end++) {
      const bytes = Buffer.concat([...encodeMessage('whole'), last.subarray(0, end)]);
      const received = await readAll(inPieces(bytes, [5]));
      expect(received.map(({ head }) => head)).toEqual(['whole']);
    }
  });

  it('of any bytes are messages or a FrameError', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        await readAll(inPieces(Buffer.from(bytes), [7])).catch((error: unknown) => {
          expect(error).toBeInstanceOf(FrameError);
        });
      }),
    );
  });
});

async function readAll(chunks: AsyncIterable<Buffer>, limits?: FrameLimits): Promise<Message[]> {
  const messages: Message[] = [];
  for await (const message of readMessages(chunks, limits)) messages.push(message);
  return messages;
}

/** In pieces of these sizes, over and over. */
async function* inPieces(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let start = 0, index = 0; start < bytes.byteLength; index++) {
    const end = start + sizes[index % sizes.length]!;
    yield bytes.subarray(start, end);
    start = end;
  }
}
