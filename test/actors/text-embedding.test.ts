import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTextEmbedding } from '../../actors/memory/text-embedding.actor.ts';
import { systemClock } from '../../runtime/clock.ts';
import { sqlWithFaults } from './fakes.ts';
import { createMemoryFixture, FakeEmbedder, type MemoryFixture } from './memory-fixture.ts';

let fixture: MemoryFixture;
beforeAll(async () => {
  fixture = await createMemoryFixture({ balanceNano: 1_000_000n });
});
afterAll(() => fixture[Symbol.asyncDispose]());

function embeddingWith(
  embedder: Parameters<typeof createTextEmbedding>[0]['embedder'],
  isClosed = () => false,
  sql = fixture.sql,
) {
  const countTokens = (text: string) => text.length;
  return createTextEmbedding({ sql, embedder, countTokens, clock: systemClock, isClosed });
}

const request = (texts: string[], dimensions: number | null = null) => ({ texts, dimensions, by: fixture.owner });
const { signal } = new AbortController();

it('text embedding uses full batches, and charges once for all characters', async () => {
  const embedder = new FakeEmbedder();
  const before = await fixture.balance();
  const texts = ['one', 'two', 'three', 'four', 'five'];
  const { embeddings, tokens, charge } = await embeddingWith(embedder).embedTexts(request(texts), signal);
  expect(embedder.batches).toEqual([texts.slice(0, 4), texts.slice(4)]);
  expect([embeddings.length, tokens, charge.chargedNano]).toEqual([5, 19, 1900n]);
  expect(before - (await fixture.balance())).toBe(1900n);
});

it('text embedding returns its result, paid once, when the response to the charge is lost', async () => {
  const before = await fixture.balance();
  let commits = 0;
  const sql = sqlWithFaults(fixture.sql, async (run) => {
    const result = await run();
    commits += 1;
    if (commits === 1) throw new Error('connection lost');
    return result;
  });
  const { embeddings, charge } = await embeddingWith(new FakeEmbedder(), undefined, sql).embedTexts(
    request(['one']),
    signal,
  );
  expect([embeddings.length, charge.chargedNano]).toEqual([1, 300n]);
  expect(before - (await fixture.balance())).toBe(300n);
});

it('text embedding costs nothing when the server fails or the client disconnects', async () => {
  const before = await fixture.balance();
  const embedder = Object.assign(new FakeEmbedder(), { isAway: true });
  const embedding = embeddingWith(embedder);
  await expect(embedding.embedTexts(request(['a']), signal)).rejects.toMatchObject({ code: 'MEMORY_UNREACHABLE' });
  const left = new AbortController();
  Object.assign(embedder, { isAway: false, onEmbed: async () => left.abort(new Error('left')) });
  await expect(embedding.embedTexts(request(['a']), left.signal)).rejects.toThrow('left');
  expect(await fixture.balance()).toBe(before);
});

it('text embedding sends no request without credit or during shutdown', async () => {
  const embedder = new FakeEmbedder();
  const expensive = request(['x'.repeat(20_000)]);
  await expect(embeddingWith(embedder).embedTexts(expensive, signal)).rejects.toMatchObject({
    code: 'INSUFFICIENT_CREDITS',
  });
  const closed = embeddingWith(embedder, () => true);
  await expect(closed.embedTexts(request(['a']), signal)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  expect(embedder.batches).toEqual([]);
});

it('text embedding rejects wrong dimensions, once known, free of charge', async () => {
  const before = await fixture.balance();
  const fake = new FakeEmbedder();
  const unknown = { name: 'server', dimensions: null, batchSize: 4, embed: fake.embed.bind(fake) };
  await expect(embeddingWith(unknown).embedTexts(request(['a'], 3), signal)).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    details: [{ path: 'dimensions', message: 'must be 2, because this model makes embeddings of one length only' }],
  });
  expect(await fixture.balance()).toBe(before);
  expect((await embeddingWith(unknown).embedTexts(request(['a'], 2), signal)).embeddings).toHaveLength(1);
});
