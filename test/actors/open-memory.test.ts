import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MemoryCaller } from '../../actors/memory/memory-desk.ts';
import { type OpenMemory, openMemory } from '../../actors/memory/open-memory.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { JobQueue } from '../../storage/jobs.ts';
import { walletOf } from '../../storage/ledger.ts';
import { eventually } from '../eventually.ts';
import { FakeLanguageModels } from '../language/fake-language-models.ts';
import { seedWorkspace } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestLogger, quiet } from './fakes.ts';
import { textOf } from './memory-fixture.ts';
import { MemoryQueue } from './memory-queue.ts';

const { signal } = new AbortController();
const SCOPE = { collectionIds: null, type: null, filters: null, entities: {}, threshold: null };

let database: TestDatabase;
let by: MemoryCaller;
const open: { close(): unknown }[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  const { workspace, user } = await seedWorkspace(database.sql);
  by = { workspaceId: workspace.id, userId: user.id, apiKeyId: null, role: 'owner', requestId: 'request-1' };
});
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
  await database.drop();
});

function opened(queue: MemoryQueue, embeddingsBaseUrl: string | null = null): OpenMemory {
  const models = new FakeLanguageModels();
  models.models = [];
  const memory = openMemory({
    sql: database.sql,
    jobs: queue,
    models,
    embeddings: { embeddingsBaseUrl, embeddingsApiKey: null, embeddingsModel: 'points-1' },
    clock: systemClock,
    logger: createTestLogger(),
  });
  open.push(memory);
  return memory;
}

describe('memory service', () => {
  it('answers MEMORY_INFRA_NOT_READY until its queue opens, and works afterwards', async () => {
    const queue = new MemoryQueue();
    queue.state = 'closed';
    const memory = opened(queue);
    await memory.ready({ withinMs: 10 });
    const ingest = () => memory.ingest({ memories: [textOf('Seven lanterns.')], by });
    await expect(ingest()).rejects.toMatchObject({ code: 'MEMORY_INFRA_NOT_READY', retryAfterS: 10 });
    await expect(memory.search({ ...SCOPE, query: 'a', limit: 1, by }, signal)).rejects.toMatchObject({
      code: 'MEMORY_INFRA_NOT_READY',
    });
    queue.state = 'working';
    await memory.ready({ withinMs: 30_000 });
    expect((await ingest()).results).toMatchObject([{ outcome: 'queued' }]);
  });

  it('finds by words only, marked as degraded and free, while the embeddings server is away', async () => {
    // A port without a listener.
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const memory = opened(new MemoryQueue(), `http://127.0.0.1:${port}/v1`);
    await memory.ready({ withinMs: 30_000 });
    const { results } = await memory.ingest({ memories: [textOf('Seven brass lanterns.')], by });
    const { id } = results[0] as { id: string };
    await eventually(async () => {
      expect(await memory.get({ memoryId: id, by })).toMatchObject({
        status: 'processing',
        error: { code: 'MEMORY_UNREACHABLE' },
      });
    });
    const before = await walletOf(database.sql, by.workspaceId);
    const found = await memory.search({ ...SCOPE, query: 'brass lanterns', limit: 5, by }, signal);
    expect(found).toMatchObject({
      isDegraded: true,
      charge: null,
      hits: [{ memoryId: id, scores: { semantic: null } }],
    });
    const context = await memory.context({ ...SCOPE, asked: { query: 'brass' }, maxTokens: 500, by }, signal);
    expect(context).toMatchObject({ isDegraded: true, charge: null, sources: [{ id }] });
    expect(await walletOf(database.sql, by.workspaceId)).toEqual(before);
  }, 60_000);

  it('embeds memories of an older embedder again after a start, and finds them by keyword until then', async () => {
    const before = opened(new MemoryQueue());
    await before.ready({ withinMs: 30_000 });
    const { results } = await before.ingest({ memories: [textOf('The elevator is out of order.')], by });
    const { id } = results[0] as { id: string };
    await eventually(async () => {
      expect(await before.get({ memoryId: id, by })).toMatchObject({ status: 'ready' });
    });
    await before.close();
    await database.sql`update memory_units set embedder = 'hashed-ngrams-2'`;
    const after = opened(new MemoryQueue());
    await after.ready({ withinMs: 30_000 });
    const find = async (query: string) => (await after.search({ ...SCOPE, query, limit: 5, by }, signal)).hits;
    expect(await find('elevator')).toMatchObject([{ memoryId: id }]);
    await eventually(async () => {
      expect(await find('Which lift works?')).toMatchObject([{ memoryId: id, scores: { keyword: null } }]);
    });
    expect(await database.sql`select distinct embedder from memory_units`).toEqual([{ embedder: 'glove-ngrams-1' }]);
  }, 60_000);

  it('closes while its queue hangs, and starts nothing when it opens later', async () => {
    const queue = new MemoryQueue();
    const answered = Promise.withResolvers<void>();
    const isWorking = { current: false };
    const memory = opened(
      Object.assign(queue, {
        async open(): Promise<JobQueue> {
          await answered.promise;
          return {
            add: async () => {},
            async work() {
              isWorking.current = true;
              return {
                close: async () => {
                  isWorking.current = false;
                },
              };
            },
          };
        },
      }),
    );
    await memory.close();
    answered.resolve();
    await quiet();
    expect(isWorking.current).toBe(false);
  });

  it('rejects requests once closed', async () => {
    const memory = opened(new MemoryQueue());
    await memory.ready({ withinMs: 30_000 });
    await memory.close();
    await expect(memory.ingest({ memories: [textOf('Late.')], by })).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  });
});
