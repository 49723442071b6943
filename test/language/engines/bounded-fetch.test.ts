import { afterEach, describe, expect, it, vi } from 'vitest';
import { boundedFetch } from '../../../language/engines/openai/bounded-fetch.ts';
import * as fc from '../../properties.ts';

const URL_OF_CHAT = 'http://models.test/v1/chat/completions';

afterEach(() => {
  vi.unstubAllGlobals();
});

async function through(pieces: readonly Uint8Array[]): Promise<string[]> {
  const body = ReadableStream.from(pieces.filter(({ byteLength }) => byteLength > 0));
  const headers = { 'content-type': 'text/event-stream' };
  vi.stubGlobal('fetch', async () => new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { headers }));
  const response = await boundedFetch(URL_OF_CHAT);
  const read: string[] = [];
  const reading = async () => {
    for await (const chunk of response.body ?? []) read.push(Buffer.from(chunk).toString('latin1'));
  };
  // The reader stops at `[DONE]`, before this error.
  await expect(reading()).rejects.toThrow('broke off');
  return read;
}

describe('server-sent event streams', () => {
  it('come out whole, in chunks that end at event boundaries, for any input chunks', async () => {
    const lines = fc.constantFrom('data: {}', 'data: né 😀', ': ping', 'event: x', '', '');
    const streams = fc
      .tuple(fc.array(lines, { maxLength: 12 }), fc.constantFrom('\n', '\r\n'))
      .map(([parts, newline]) => Buffer.from(parts.map((line) => line + newline).join('')));
    const cases = streams.chain((stream) =>
      fc.tuple(fc.constant(stream), fc.array(fc.nat(stream.length), { maxLength: 8 })),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ([stream, cuts]) => {
        const edges = [0, ...cuts.sort((a, b) => a - b), stream.length];
        const out = await through(edges.slice(1).map((end, at) => stream.subarray(edges[at], end)));
        expect(out.join('').replace(/\n\n$/, '')).toBe(stream.toString('latin1').replace(/\n\n$/, ''));
        for (const at of out.keys()) expect(out.slice(0, at + 1).join('')).toMatch(/\n\r?\n$/);
      }),
    );
  });

  it('yield to other work while much data is buffered', async () => {
    const stream = Buffer.from('data: {"choices":[]}\n\n'.repeat(4_000));
    const body = ReadableStream.from([stream]) as ReadableStream<Uint8Array<ArrayBuffer>>;
    vi.stubGlobal('fetch', async () => new Response(body));
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    let pieces = 0;
    const reading = async () => {
      for await (const _ of (await boundedFetch(URL_OF_CHAT)).body ?? []) {
        pieces += 1;
        for (const until = performance.now() + 3; performance.now() < until; );
      }
    };
    await expect(reading()).rejects.toThrow('broke off');
    isOver = true;
    expect(pieces).toBeGreaterThan(10);
    expect(turns).toBeGreaterThanOrEqual(pieces - 2);
  });
});
