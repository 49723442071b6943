import { describe, expect, it } from 'vitest';
import { encodeMessage, FrameError, MOST_MESSAGE_BYTES, readMessages } from '../../../language/engines/llama/frames.ts';
import * as fc from '../../properties.ts';
import { collected } from './asking.ts';

describe('frames of messages with the process of a model', () => {
  it('come out as they went in, however the bytes were cut', async () => {
    const messages = fc.array(fc.record({ type: fc.string({ unit: 'binary' }), text: fc.string({ unit: 'binary' }) }));
    await fc.assert(
      fc.asyncProperty(messages, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), async (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(encodeMessage));
        // A lone surrogate has no UTF-8, and arrives as U+FFFD.
        const expected = sent.map((message) => JSON.parse(Buffer.from(JSON.stringify(message)).toString()));
        expect(await collected(readMessages(pieces(bytes, cuts)))).toEqual(expected);
      }),
    );
  });

  it('end with the stream in the middle of a message', async () => {
    const bytes = encodeMessage({ type: 'stop', id: 1 });
    for (let end = 0; end < bytes.byteLength; end++) {
      expect(await collected(readMessages(pieces(bytes.subarray(0, end), [3])))).toEqual([]);
    }
  });

  it('of any bytes are messages or a refusal, never another error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        await collected(readMessages(pieces(Buffer.from(bytes), [7]))).catch((error: unknown) => {
          expect(error).toBeInstanceOf(FrameError);
        });
      }),
    );
  });

  it('are refused when they say that they are too long, before they are there', async () => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(MOST_MESSAGE_BYTES + 1);
    await expect(collected(readMessages(pieces(length, [4])))).rejects.toThrow(FrameError);
    expect(() => encodeMessage({ text: 'x'.repeat(MOST_MESSAGE_BYTES) })).toThrow(RangeError);
  });
});

async function* pieces(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let start = 0;
  for (let index = 0; start < bytes.byteLength; index++) {
    const length = cuts[index % cuts.length] ?? 1;
    yield bytes.subarray(start, start + length);
    start += length;
  }
}
