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

describe('pipe messages', () => {
  it('arrive whole and in order for any chunks', async () => {
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

  it('replace lone surrogates, which UTF-8 cannot encode', async () => {
    const text = fc.string({ unit: 'binary' });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ type: text, text })), cuts, async (sent, sizes) => {
        const bytes = Buffer.concat(sent.flatMap((message) => encodeMessage(message)));
        const expected = sent.map((message) => JSON.parse(Buffer.from(JSON.stringify(message)).toString()));
        expect((await readAll(inPieces(bytes, sizes))).map(({ head }) => head)).toEqual(expected);
      }),
    );
  });

  it('arrive whole at maximum length', async () => {
    const longest = new Uint8Array(bodyBytes).fill(7);
    const [message] = await readAll(inPieces(Buffer.concat(encodeMessage(null, longest)), [4096]));
    expect(message?.body.equals(longest)).toBe(true);
  });

  it('beyond the maximum length cannot be encoded', () => {
    expect(() => encodeMessage(null, new Uint8Array(bodyBytes + 1))).toThrow(RangeError);
    expect(() => encodeMessage('a'.repeat(headBytes))).toThrow(RangeError);
  });

  it('with an excessive length or invalid JSON fail', async () => {
    for (const lengths of [
      [headBytes + 1, 0],
      [0, bodyBytes + 1],
      [0, 0],
    ]) {
      await expect(readAll(inPieces(Buffer.from(Uint32Array.from(lengths).buffer), [3]))).rejects.toThrow(FrameError);
    }
  });

  it('have a maximum length that both ends agree on', async () => {
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

  it('disappear if truncated', async () => {
    const last = Buffer.concat(encodeMessage('broken off', Buffer.from('body')));
    for (let end = 0; end < last.byteLength; end++) {
      const bytes = Buffer.concat([...encodeMessage('whole'), last.subarray(0, end)]);
      const received = await readAll(inPieces(bytes, [5]));
      expect(received.map(({ head }) => head)).toEqual(['whole']);
    }
  });

  it('decode or fail with a FrameError for any bytes', async () => {
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

async function* inPieces(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let start = 0, index = 0; start < bytes.byteLength; index++) {
    const end = start + sizes[index % sizes.length]!;
    yield bytes.subarray(start, end);
    start = end;
  }
}
