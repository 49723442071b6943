import { describe, expect, it, onTestFinished } from 'vitest';
import { makeMissingPoints } from '../../../actors/memory/missing-points.ts';
import { createPointSource, createRecallStore } from '../../../actors/memory/recall-store.ts';
import type { Embedder } from '../../../language/memory/embedder.ts';
import { createOfflineEmbedder } from '../../../language/memory/embedder-offline.ts';
import { makePoints } from '../../../language/memory/make-points.ts';
import { createRecall } from '../../../language/memory/recall.ts';
import { createVectorIndex } from '../../../language/memory/vector-index.ts';
import { TandemError } from '../../../machines/errors.ts';
import { deleteMemory, type NewMemory } from '../../../storage/queries/memories.ts';
import {
  createMemoryCollection,
  type MemoryCollectionRow,
  type MemoryViewer,
} from '../../../storage/queries/memory-collections.ts';
import { parseMetadataFilter } from '../../../storage/queries/memory-filter.ts';
import { chunk, process, remember, seedColleague, seedMemories } from '../../storage/memory-fixture.ts';
import { NOW } from '../../storage/seed.ts';
import { createTestDatabase } from '../../storage/test-database.ts';
import { PARAPHRASES } from './paraphrases.ts';

const SIGNAL = new AbortController().signal;

describe('recall', () => {
  it('finds pending memories by keyword and processed ones by keyword and meaning', async () => {
    const { recall, add, learn } = await recalling();
    await add('Pods restart after a deployment.');
    const [pending] = (await recall('restarting pods')).results;
    expect(pending).toMatchObject({
      text: 'Pods restart after a deployment.',
      kind: 'whole',
      scores: { semantic: null },
    });
    await learn('Pods of the cluster are restarted at night.');
    const { results, total, degraded, timingMs } = await recall('restarting pods of a cluster');
    expect(results[0]).toMatchObject({ text: 'Pods of the cluster are restarted at night.', kind: 'chunk' });
    expect(results[0]!.scores.semantic).toBeGreaterThan(0.2);
    expect(results[0]!.scores.keyword).toBeGreaterThan(0.5);
    expect({ total, degraded }).toEqual({ total: 2, degraded: false });
    expect(timingMs).toBeGreaterThan(0);
  });

  it('sees every committed change during concurrent writes, including deletion', async () => {
    const { sql, viewer, recall, learn } = await recalling();
    await Promise.all(
      Array.from({ length: 24 }, async (_, at) => {
        const memory = await learn(`The code of room number${at} is ${at * 7919}`);
        const found = async () => (await recall(`number${at}`)).results.map(({ memoryId }) => memoryId);
        expect(await found()).toContain(memory.id);
        if (at % 2 === 0) {
          await deleteMemory(sql, viewer, { id: memory.id, now: NOW });
          expect(await found()).not.toContain(memory.id);
        }
      }),
    );
    expect((await recall('code of room', { limit: 100 })).total).toBe(12);
  });

  it('returns each memory once, by its best unit', async () => {
    const { sql, collection, recall, pointed } = await recalling();
    const memory = await remember(sql, collection);
    const texts = ['Opening hours are nine to five', 'Refunds are paid within five days', 'Refunds need a receipt'];
    await process(sql, memory, { units: await pointed(texts) });
    const { results, total } = await recall('when are refunds paid');
    expect(results.map(({ text }) => text)).toEqual(['Refunds are paid within five days']);
    expect(total).toBe(1);
  });

  it('respects visibility, collections, types and metadata filters', async () => {
    const { sql, viewer, workspaceId, recall, learn } = await recalling();
    const colleague = await seedColleague(sql, workspaceId, 'member');
    const team = await createMemoryCollection(sql, {
      workspaceId,
      type: 'team',
      name: 'T',
      createdByUserId: viewer.userId,
      now: NOW,
    });
    await learn('Coffee is served at nine', { metadata: { floor: 1 } });
    await learn('Coffee is served at ten', { metadata: { floor: 2 } }, team);
    const texts = async (more: Partial<Parameters<typeof recall>[1]>) =>
      (await recall('coffee served', more)).results.map(({ text }) => text).toSorted();
    expect(await texts({})).toEqual(['Coffee is served at nine', 'Coffee is served at ten']);
    expect(await texts({ collectionIds: [team.id] })).toEqual(['Coffee is served at ten']);
    expect(await texts({ type: 'user' })).toEqual(['Coffee is served at nine']);
    expect(await texts({ type: 'user', collectionIds: [team.id] })).toEqual([]);
    expect(await texts({ filters: { floor: { $lt: 2 } } })).toEqual(['Coffee is served at nine']);
    expect(await texts({ filters: { floor: 3 } })).toEqual([]);
    expect(await texts({ viewer: colleague })).toEqual([]);
    for (const ids of [[team.id], ['none'], [team.id, 'none']]) {
      const asked = recall('coffee', { viewer: colleague, collectionIds: ids });
      await expect(asked).rejects.toMatchObject({ code: 'COLLECTION_NOT_FOUND' });
    }
  });

  it('requires quoted phrases and excludes those after a minus', async () => {
    const { recall, learn } = await recalling();
    for (const text of ['filter coffee in the morning', 'coffee filters in the morning']) await learn(text);
    expect((await recall('"filter coffee" morning')).results.map(({ text }) => text)).toEqual([
      'filter coffee in the morning',
    ]);
    expect((await recall('coffee morning -"filter coffee"')).total).toBe(1);
    expect((await recall('"filter coffee" morning', { isPlain: true })).total).toBe(2);
  });

  it('applies limit and threshold', async () => {
    const { recall, learn } = await recalling();
    for (const text of ['blue tea pot', 'green tea pot', 'black tea', 'a pot']) await learn(text);
    const all = await recall('blue tea pot');
    expect(all.results.map(({ score }) => score)).toEqual(
      all.results.map(({ score }) => score).toSorted((a, b) => b - a),
    );
    expect(all.results[0]).toMatchObject({ text: 'blue tea pot' });
    expect(all.results[0]!.score).toBeGreaterThan(0.95);
    const one = await recall('blue tea pot', { limit: 1 });
    expect([one.results.length, one.total]).toEqual([1, all.total]);
    const sure = await recall('blue tea pot', { threshold: 0.95 });
    expect([sure.results.length, sure.total]).toEqual([1, 1]);
    expect((await recall('blue tea pot', { threshold: 1.1 })).results).toEqual([]);
  });

  it('falls back to keywords and sets `degraded` when the embeddings server fails', async () => {
    const failing: Embedder = {
      ...createOfflineEmbedder(),
      embed: async () => {
        throw new TandemError('MEMORY_UNREACHABLE', 'no');
      },
    };
    const { recall, add } = await recalling({ embedder: failing });
    await add('Pods restart');
    expect(await recall('pods')).toMatchObject({
      degraded: true,
      total: 1,
      results: [{ scores: { semantic: null, keyword: 1 } }],
    });
  });

  it('falls back to keywords when the embeddings server takes too long', async () => {
    const slow: Embedder = {
      ...createOfflineEmbedder(),
      embed: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    };
    const { recall, add } = await recalling({ embedder: slow, timeoutMs: 300 });
    await add('Pods restart');
    expect(await recall('pods')).toMatchObject({ degraded: true, total: 1 });
  });

  it('fails when both searches fail, and stops when aborted', async () => {
    const { recall, sql, add } = await recalling();
    await add('Pods restart');
    const stopped = recall('pods', { signal: AbortSignal.abort(new Error('enough')) });
    await expect(stopped).rejects.toThrow('enough');
    await sql`drop table memory_words cascade`;
    expect(await recall('pods')).toMatchObject({ degraded: true });
    await sql`drop table memory_units cascade`;
    await expect(recall('pods', { filters: { a: 1 } })).rejects.toMatchObject({
      code: 'MEMORY_UNREACHABLE',
      retryAfterS: 10,
    });
  });

  it('finds a paraphrase that shares no word with the memory', async () => {
    const { recall, learn } = await recalling();
    for (const text of ['The elevator is out of order until Monday', 'Coffee is served at nine', 'Nadia plays chess']) {
      await learn(text);
    }
    const { results } = await recall('When does the lift work?');
    expect(results[0]).toMatchObject({ text: 'The elevator is out of order until Monday', scores: { keyword: null } });
  });

  it('leaves out irrelevant memories on request, down to none', async () => {
    const { recall, learn } = await recalling();
    const passages = PARAPHRASES.slice(0, 20).map(([passage]) => passage);
    for (const passage of passages) await learn(passage);
    const texts = async (query: string, isRelevantOnly: boolean) =>
      (await recall(query, { isRelevantOnly, limit: 40 })).results.map(({ text }) => text);
    const question = 'When is the lift repaired?';
    const [all, relevant] = [await texts(question, false), await texts(question, true)];
    expect(relevant[0]).toBe(passages[0]);
    expect(relevant).toEqual(all.slice(0, relevant.length));
    expect(relevant.length).toBeLessThan(all.length / 2);
    expect(await texts('zxqvw qqzzy', true)).toEqual([]);
  });

  it('finds memories by meaning if re-embedded, and the rest by keyword', async () => {
    const { sql, recall, learn, embedder } = await recalling();
    await learn('The elevator is out of order');
    await sql`update memory_units set embedder = 'an-older-one'`;
    await makeMissingPoints({ sql, embedder }, SIGNAL);
    await learn('The lift in the garage is slow');
    await sql`update memory_units set embedder = 'an-older-one' where text like '%garage%'`;
    const { results } = await recall('lift garage');
    expect(results).toMatchObject([
      { text: 'The lift in the garage is slow', scores: { semantic: null, keyword: 1 } },
      { text: 'The elevator is out of order', scores: { keyword: null } },
    ]);
  });

  it('finds memories by meaning again once the new embeddings exist', async () => {
    const { sql, recall, learn, embedder } = await recalling();
    await learn('Pods restart at night');
    await sql`update memory_units set embedder = 'an-older-one'`;
    expect((await recall('pods restart at')).results).toMatchObject([{ scores: { semantic: null } }]);
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(1);
    expect(await makeMissingPoints({ sql, embedder }, SIGNAL)).toBe(0);
    expect((await recall('pods restart at')).results[0]!.scores.semantic).toBeGreaterThan(0.5);
  });

  it('accepts any query', async () => {
    const { recall, learn } = await recalling();
    await learn('Pods restart at night');
    for (const query of [
      '',
      '\0',
      '😀😀',
      '\ud800',
      '"',
      '-',
      '東京',
      `pods ${'word '.repeat(10_000)}`,
      'x'.repeat(1_000_000),
    ]) {
      const { degraded, total } = await recall(query);
      expect({ degraded, total }, query.slice(0, 20)).toEqual({
        degraded: false,
        total: query.startsWith('pods') ? 1 : 0,
      });
    }
  });
});

interface Asked {
  viewer?: MemoryViewer;
  limit?: number;
  threshold?: number;
  isPlain?: boolean;
  isRelevantOnly?: boolean;
  collectionIds?: string[];
  type?: string;
  filters?: object;
  signal?: AbortSignal;
}

async function recalling({
  embedder = createOfflineEmbedder(),
  timeoutMs = 20_000,
}: {
  embedder?: Embedder;
  timeoutMs?: number;
} = {}) {
  const database = await createTestDatabase();
  const logger = { warn() {} };
  const { sql } = database;
  const index = createVectorIndex({ source: createPointSource(sql, { embedder: embedder.name }), logger });
  onTestFinished(async () => {
    await index.close();
    await database.drop();
  });
  const seeded = await seedMemories(sql);
  const search = createRecall({ store: createRecallStore(sql), embedder, index, timeoutMs, logger });
  const pointed = async (texts: readonly string[]) => {
    const placed = texts.map((text) => ({ heading: null, text }));
    const points = await makePoints(embedder, { texts: placed, signal: SIGNAL });
    return texts.map((text, at) => chunk(text, points[at]!));
  };
  const add = (content: string, more: Partial<NewMemory> = {}, to: MemoryCollectionRow = seeded.collection) =>
    remember(sql, to, { content, ...more });
  return {
    ...seeded,
    embedder,
    pointed,
    add,
    async learn(content: string, more: Partial<NewMemory> = {}, to: MemoryCollectionRow = seeded.collection) {
      const memory = await add(content, more, to);
      await process(sql, memory, { units: await pointed([content]) });
      return memory;
    },
    recall: (query: string, { filters = {}, ...asked }: Asked = {}) =>
      search({
        viewer: seeded.viewer,
        query,
        limit: 10,
        conditions: parseMetadataFilter(filters),
        signal: SIGNAL,
        ...asked,
      }),
  };
}
