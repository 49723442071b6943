import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type JobQueue, type Jobs, MOST_UNQUEUED, openJobs } from '../../storage/jobs.ts';
import { eventually } from '../eventually.ts';
import { onEveryServer } from './every-server.ts';
import { openGate } from './gate.ts';
import { openTestNamespace, REDIS_URL, redisIsReachable } from './test-redis.ts';

const redisUp = await redisIsReachable();

/** Conformance suite of job backends. `open` returns an unshared queue. */
function jobSuite(open: () => Promise<{ jobs: Jobs; close: () => Promise<void> }>): void {
  let jobs: Jobs;
  let queue: JobQueue;
  let close: () => Promise<void>;
  beforeEach(async () => {
    ({ jobs, close } = await open());
    queue = await jobs.open('deliveries');
  });
  afterEach(async () => {
    await jobs.close();
    await close();
  });

  async function seeing(count: number, then?: (id: string) => void) {
    const seen: string[] = [];
    const enough = Promise.withResolvers<string[]>();
    const worker = await queue.work(
      async (id) => {
        seen.push(id);
        if (seen.length === count) enough.resolve(seen);
        then?.(id);
      },
      { concurrency: 4 },
    );
    return { worker, seen, enough: enough.promise };
  }

  it('delivers jobs queued before and after the worker started', async () => {
    await queue.add('before', { delayMs: 0, attempt: 1 });
    const { enough } = await seeing(3);
    await queue.add('after', { delayMs: 0, attempt: 1 });
    await queue.add('delayed', { delayMs: 30.5, attempt: 1 });
    expect((await enough).sort()).toEqual(['after', 'before', 'delayed']);
  });

  it('queues an attempt once despite repeats, and the next attempt separately', async () => {
    for (let repeat = 0; repeat < 5; repeat += 1) await queue.add('d', { delayMs: 0, attempt: 1 });
    await queue.add('d', { delayMs: 0, attempt: 2 });
    await queue.add('last', { delayMs: 20, attempt: 1 });
    const { enough } = await seeing(3);
    expect(await enough).toEqual(['d', 'd', 'last']);
  });

  it('never retries by itself, and accepts the same attempt again after a failure', async () => {
    const { worker, seen, enough } = await seeing(2, (id) => {
      if (id === 'fails') throw new Error('the database went away');
    });
    await queue.add('fails', { delayMs: 0, attempt: 1 });
    await queue.add('marker', { delayMs: 0, attempt: 1 });
    await enough;
    // Closing waits for running jobs, so the failure is stored.
    await worker.close();
    expect(seen.sort()).toEqual(['fails', 'marker']);
    await queue.add('fails', { delayMs: 0, attempt: 1 });
    const again = await seeing(1);
    expect(await again.enough).toEqual(['fails']);
  });

  it('separates queues', async () => {
    const memories = await jobs.open('memories');
    await memories.add('a memory', { delayMs: 0, attempt: 1 });
    await queue.add('a delivery', { delayMs: 0, attempt: 1 });
    const { worker, seen, enough } = await seeing(1);
    await enough;
    await worker.close();
    expect(seen).toEqual(['a delivery']);
    const worked = Promise.withResolvers<string>();
    await memories.work(async (id) => worked.resolve(id), { concurrency: 1 });
    expect(await worked.promise).toBe('a memory');
    expect(await jobs.open('memories')).toBe(memories);
  });

  it('finishes a running job before it closes', async () => {
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    let finished = false;
    await queue.work(
      async () => {
        started.resolve();
        await release.promise;
        finished = true;
      },
      { concurrency: 1 },
    );
    await queue.add('slow', { delayMs: 0, attempt: 1 });
    await started.promise;
    const closed = jobs.close();
    release.resolve();
    await closed;
    expect(finished).toBe(true);
  });
}

onEveryServer('jobs', (database) =>
  jobSuite(async () => ({ jobs: await openJobs({ databaseUrl: database().url }), close: async () => {} })),
);

describe.skipIf(!redisUp)('jobs on Redis at TANDEM_TEST_REDIS_URL', () => {
  jobSuite(async () => {
    const namespace = `tandem-test-${randomUUID()}`;
    return {
      jobs: await openJobs({ databaseUrl: '', redisUrl: REDIS_URL, namespace }),
      close: async () => {
        const redis = new Redis(REDIS_URL);
        const keys = await redis.keys(`${namespace}*`);
        if (keys.length > 0) await redis.del(...keys);
        await redis.quit();
      },
    };
  });
});

describe.skipIf(!redisUp)('jobs during a Redis outage', () => {
  it('fail to be queued instead of waiting for the server', async () => {
    await using namespace = openTestNamespace();
    const gate = await openGate(REDIS_URL);
    const jobs = await openJobs({ databaseUrl: '', redisUrl: gate.url, namespace: namespace.name });
    const queue = await jobs.open('deliveries');
    await gate.shut();
    await expect(queue.add('refused', { delayMs: 0, attempt: 1 })).rejects.toThrow('the job server does not respond');
    await jobs.close();
  });

  it('wait for the server in limited numbers, and are queued afterwards', async () => {
    await using namespace = openTestNamespace();
    const gate = await openGate(REDIS_URL);
    const jobs = await openJobs({ databaseUrl: '', redisUrl: gate.url, namespace: namespace.name });
    const queue = await jobs.open('deliveries');
    await gate.shut();
    const ids = Array.from({ length: MOST_UNQUEUED }, (_, index) => `job-${index}`);
    const waiting = ids.map((id) => queue.add(id, { delayMs: 3_600_000, attempt: 1 }));
    await expect(queue.add('one too many', { delayMs: 0, attempt: 1 })).rejects.toThrow('too many jobs');
    await Promise.allSettled(waiting);
    await gate.open();
    await eventually(async () => expect(await jobs.counts()).toMatchObject({ deliveries: { delayed: ids.length } }));
    await queue.add('after', { delayMs: 3_600_000, attempt: 1 });
    await jobs.close();
    await gate.shut();
  });

  it('close after the running jobs', async () => {
    await using namespace = openTestNamespace();
    const gate = await openGate(REDIS_URL);
    const jobs = await openJobs({ databaseUrl: '', redisUrl: gate.url, namespace: namespace.name });
    const queue = await jobs.open('deliveries');
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    let isDone = false;
    await queue.work(
      async () => {
        started.resolve();
        await release.promise;
        isDone = true;
      },
      { concurrency: 1 },
    );
    await queue.add('slow', { delayMs: 0, attempt: 1 });
    await started.promise;
    await gate.shut();
    const closed = jobs.close();
    release.resolve();
    await closed;
    expect(isDone).toBe(true);
  });
});

describe('job queue without a server', () => {
  it.each([
    ['Postgres', { databaseUrl: 'postgres://nobody@127.0.0.1:1/none' }],
    ['Redis', { databaseUrl: '', redisUrl: 'redis://127.0.0.1:1' }],
  ])('fails at once with the address of %s', async (server, options) => {
    await expect(openJobs(options)).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringMatching(new RegExp(`${server}.*ECONNREFUSED`)),
    });
  });
});
