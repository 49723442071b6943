import { describe, expect, it } from 'vitest';
import { createOpenAiEmbedder, type OpenAiEmbedderOptions } from '../../../language/memory/embedder-openai.ts';
import { type ModelServer, startModelServer } from '../model-server.ts';

const SIGNAL = new AbortController().signal;
const UNREACHABLE = { code: 'MEMORY_UNREACHABLE', retryAfterS: 10 };

describe('embeddings of an OpenAI-compatible server', () => {
  it('are asked for in batches, and come back in the order of the texts, of length 1', async () => {
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

  it('are taken as lists of numbers as well as in base64, by their index', async () => {
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

  it('are asked for again when what failed may pass', async () => {
    await using server = await startModelServer();
    server.embed({ status: 503, error: { message: 'busy' } }, { drop: 'early' });
    await expect(embedderOf(server).embed(['a'], SIGNAL)).resolves.toHaveLength(1);
    expect(server.asked('/embeddings')).toHaveLength(3);
  });

  it('are given up for now after so many attempts, and at once when asking again is of no use', async () => {
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

  it('are not waited for longer than they may take, or than anybody wants them', async () => {
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
    ['too few', [{ index: 0, embedding: [1] }]],
    [
      'the same twice',
      [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    ],
    [
      'an index that is none',
      [
        { index: 0, embedding: [1] },
        { index: 2, embedding: [1] },
      ],
    ],
    [
      'an index that is a name',
      [
        { index: 'length', embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    ],
    ['of different dimensions', [{ embedding: [1] }, { embedding: [1, 2] }]],
    ['of no dimensions', [{ embedding: [] }, { embedding: [] }]],
    ['of too many dimensions', [{ embedding: Array(9_000).fill(1) }, { embedding: Array(9_000).fill(1) }]],
    ['not numbers', [{ embedding: [1, 'x'] }, { embedding: [1, 2] }]],
    ['without a direction', [{ embedding: [0, 0] }, { embedding: [1, 2] }]],
    ['beyond all numbers', [{ embedding: [1e308, 1e308] }, { embedding: [1, 2] }]],
    ['not a number in base64', [{ embedding: base64([Number.NaN, 1]) }, { embedding: [1, 2] }]],
    ['nothing', [null, null]],
    ['an object', { length: 2 }],
  ])('are refused when they are %s', async (_, data) => {
    await using server = await startModelServer();
    server.embed(answering(data));
    await expect(embedderOf(server).embed(['a', 'b'], SIGNAL)).rejects.toMatchObject(UNREACHABLE);
    expect(server.asked('/embeddings')).toHaveLength(1);
  });

  it('are refused when they are of other dimensions than before', async () => {
    await using server = await startModelServer();
    const embedder = embedderOf(server);
    await embedder.embed(['a'], SIGNAL);
    server.dimensions = 9;
    await expect(embedder.embed(['a'], SIGNAL)).rejects.toMatchObject(UNREACHABLE);
  });

  it.each([
    ['is no JSON', { raw: ['HTTP/1.1 200 OK'], contentType: 'application/json' }],
    ['is null', { raw: ['null'], contentType: 'application/json' }],
    ['does not end', { raw: [new Uint8Array(40 * 2 ** 20)], contentType: 'application/json' }],
  ])('are refused when the answer %s', async (_, turn) => {
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
