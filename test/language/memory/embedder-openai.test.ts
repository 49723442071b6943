import { describe, expect, it } from 'vitest';
import { createOpenAiEmbedder, type OpenAiEmbedderOptions } from '../../../language/memory/embedder-openai.ts';
import { type ModelServer, startModelServer } from '../model-server.ts';

const SIGNAL = new AbortController().signal;
const UNREACHABLE = { code: 'MEMORY_UNREACHABLE', retryAfterS: 10 };

describe('OpenAI-compatible embedder', () => {
  it('sends batches and returns unit vectors in the order of the texts', async () => {
    await using server = await startModelServer();
    const embedder = embedderOf(server);
    const texts = Array.from({ length: 70 }, (_, at) => `text ${at}`);
    const points = await embedder.embed(texts, SIGNAL);
    expect(points).toHaveLength(70);
    for (const point of points) expect(Math.hypot(...point)).toBeCloseTo(1, 5);
    const asked = server.asked('/embeddings').map(({ body }) => body.input);
    expect(asked.map((input: string[]) => input.length)).toEqual([32, 32, 6]);
    expect(asked.flat()).toEqual(texts);
    expect(embedder).toMatchObject({ name: 'openai:embed-1', dimensions: 8, batchSize: 32 });
    const [alone] = await embedder.embed(['text 69'], SIGNAL);
    expect(Math.max(...alone!.map((value, at) => Math.abs(value - points[69]![at]!)))).toBeLessThan(1e-5);
  });

  it('replaces blank texts and lone surrogates, which servers reject', async () => {
    await using server = await startModelServer();
    await embedderOf(server).embed([' ', 'cut within \ud83d', '\ude00 cut within'], SIGNAL);
    const [asked] = server.asked('/embeddings');
    expect(asked!.body.input).toEqual([' . ', 'cut within \ufffd', '\ufffd cut within']);
  });

  it('accepts number lists and base64, ordered by index', async () => {
    await using server = await startModelServer();
    server.embed(
      answering([
        { index: 1, embedding: [0, 2] },
        { index: 0, embedding: base64([3, 4]) },
      ]),
    );
    const points = await embedderOf(server).embed(['a', 'b'], SIGNAL);
    expect(points.map((point) => [...point].map((value) => Number(value.toFixed(3))))).toEqual([
      [0.6, 0.8],
      [0, 1],
    ]);
  });

  it('retries transient failures', async () => {
    await using server = await startModelServer();
    server.embed({ status: 503, error: { message: 'busy' } }, { drop: 'early' });
    await expect(embedderOf(server).embed(['a'], SIGNAL)).resolves.toHaveLength(1);
    expect(server.asked('/embeddings')).toHaveLength(3);
  });

  it('gives up after its last retry, and at once for permanent errors', async () => {
    await using server = await startModelServer();
    server.embed(...Array.from({ length: 3 }, () => ({ status: 500, error: { message: 'secret words' } })));
    await expect(embedderOf(server).embed(['a'], SIGNAL)).rejects.toMatchObject({
      ...UNREACHABLE,
      message: expect.not.stringContaining('secret words'),
    });
    expect(server.asked('/embeddings')).toHaveLength(3);
    server.apiKey = 'sk-right';
    await expect(embedderOf(server, { retries: 0 }).embed(['a'], SIGNAL)).rejects.toMatchObject(UNREACHABLE);
    await expect(embedderOf(server, { apiKey: 'sk-right' }).embed(['a'], SIGNAL)).resolves.toHaveLength(1);
  });

  it('stops at its timeout and when the caller aborts', async () => {
    await using server = await startModelServer();
    server.embed({ hang: 'early' }, { hang: 'early' });
    await expect(embedderOf(server, { timeoutMs: 50, retries: 0 }).embed(['a'], SIGNAL)).rejects.toMatchObject(
      UNREACHABLE,
    );
    const stopping = new AbortController();
    const asked = embedderOf(server).embed(['a'], stopping.signal);
    const second = await server.request('/embeddings', 2);
    stopping.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
    expect(await second.isLeft).toBe(true);
  });

  it.each([
    ['too few items', [{ index: 0, embedding: [1] }]],
    [
      'a duplicate index',
      [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    ],
    [
      'an index out of range',
      [
        { index: 0, embedding: [1] },
        { index: 2, embedding: [1] },
      ],
    ],
    [
      'an index that is a string',
      [
        { index: 'length', embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    ],
    ['different dimensions', [{ embedding: [1] }, { embedding: [1, 2] }]],
    ['no dimensions', [{ embedding: [] }, { embedding: [] }]],
    ['too many dimensions', [{ embedding: Array(9_000).fill(1) }, { embedding: Array(9_000).fill(1) }]],
    ['values that are not numbers', [{ embedding: [1, 'x'] }, { embedding: [1, 2] }]],
    ['length zero', [{ embedding: [0, 0] }, { embedding: [1, 2] }]],
    ['infinite length', [{ embedding: [1e308, 1e308] }, { embedding: [1, 2] }]],
    ['NaN in base64', [{ embedding: base64([Number.NaN, 1]) }, { embedding: [1, 2] }]],
    ['null items', [null, null]],
    ['an object in place of the list', { length: 2 }],
  ])('rejects embeddings with %s', async (_, data) => {
    await using server = await startModelServer();
    server.embed(answering(data));
    await expect(embedderOf(server).embed(['a', 'b'], SIGNAL)).rejects.toMatchObject(UNREACHABLE);
    expect(server.asked('/embeddings')).toHaveLength(1);
  });

  it('rejects embeddings whose dimensions change', async () => {
    await using server = await startModelServer();
    const embedder = embedderOf(server);
    await embedder.embed(['a'], SIGNAL);
    server.dimensions = 9;
    await expect(embedder.embed(['a'], SIGNAL)).rejects.toMatchObject(UNREACHABLE);
  });

  it.each([
    ['contains no JSON', { raw: ['HTTP/1.1 200 OK'], contentType: 'application/json' }],
    ['contains null', { raw: ['null'], contentType: 'application/json' }],
    ['exceeds the size limit', { raw: [new Uint8Array(40 * 2 ** 20)], contentType: 'application/json' }],
  ])('rejects an answer that %s', async (_, turn) => {
    await using server = await startModelServer();
    server.embed(turn);
    await expect(embedderOf(server, { retries: 0 }).embed(['a'], SIGNAL)).rejects.toMatchObject(UNREACHABLE);
  });
});

function embedderOf({ baseUrl }: ModelServer, overrides: Partial<OpenAiEmbedderOptions> = {}) {
  return createOpenAiEmbedder({ baseUrl, apiKey: null, model: 'embed-1', retryDelayMs: 1, ...overrides });
}

function answering(data: unknown) {
  return { raw: [JSON.stringify({ object: 'list', data })], contentType: 'application/json' };
}

function base64(values: number[]): string {
  return Buffer.from(Float32Array.from(values).buffer).toString('base64');
}
