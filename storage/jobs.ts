import { createPostgresBackend, type Job, type JobsOptions, Queue, type RedisClient, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { TandemError } from '../machines/errors.ts';
import { LATE, within } from '../runtime/waiting.ts';
import { connect, type StorageLogger } from './database.ts';
import { jobConnection } from './job-connection.ts';

/**
 * Job queues that trigger due work: BullMQ on Postgres, or on Redis if configured. A job only names a row. The row
 * decides whether, when and how often to retry. So failed jobs are dropped, and lost ones are queued again from the
 * row.
 */
export interface Jobs {
  /** Opens the queue once. @throws TandemError `STORAGE_UNAVAILABLE` */
  open(name: QueueName): Promise<JobQueue>;
  /** Counts the jobs of each open queue. */
  counts(): Promise<Partial<Record<QueueName, JobCounts>>>;
  /** Resolves if Redis responds; rejects while it is away. Null on Postgres. */
  readonly pingRedis: (() => Promise<void>) | null;
  /** Closes the workers, then the connections, without waiting for an unavailable server. Idempotent. */
  close(): Promise<void>;
}

export type QueueName = 'deliveries' | 'memories' | 'judge-batches';

export interface JobCounts {
  /** Due, but not taken. */
  waiting: number;
  /** In progress in all processes. */
  active: number;
  /** Due later. */
  delayed: number;
}

export interface JobQueue {
  /**
   * Queues an attempt, once per row and attempt number. Rejects if the server does not respond within five seconds; the
   * job may still be queued later. Rejects at once while `MOST_UNQUEUED` jobs wait for the server.
   */
  add(id: string, options: { delayMs: number; attempt: number }): Promise<void>;
  /** Starts taking jobs. `close` lets running jobs finish. */
  work(handler: (id: string) => Promise<void>, options: { concurrency: number }): Promise<JobWorker>;
}

export interface JobWorker {
  close(): Promise<void>;
}

export interface OpenJobsOptions {
  databaseUrl: string;
  /** redis:// or rediss://. Replaces Postgres. */
  redisUrl?: string;
  /** Separates installations on one server: schema in Postgres, key prefix in Redis. */
  namespace?: string;
  /** Timeout of the first connection. Default 5 000 ms. */
  connectTimeoutMs?: number;
  logger?: StorageLogger;
}

/**
 * Connects to the job server. @throws TandemError `STORAGE_UNAVAILABLE` if it cannot be reached: BullMQ itself would
 * retry for ever
 */
export async function openJobs(options: OpenJobsOptions): Promise<Jobs> {
  const server = options.redisUrl === undefined ? await onPostgres(options) : await onRedis(options, options.redisUrl);
  const queues = new Map<QueueName, Promise<OpenQueue>>();
  let closing: Promise<void> | null = null;

  return {
    open(name) {
      let queue = queues.get(name);
      if (queue === undefined) {
        queue = openQueue(server, { name, logger: options.logger });
        queues.set(name, queue);
        // Allows another attempt to open it.
        queue.catch(() => queues.delete(name));
      }
      return queue;
    },
    async counts() {
      const counted = [...queues].map(async ([name, queue]) => [name, await (await queue).counts()] as const);
      return Object.fromEntries(await Promise.all(counted));
    },
    pingRedis: server.ping,
    close() {
      closing ??= (async () => {
        const opened = await Promise.allSettled(queues.values());
        await Promise.all(opened.map((result) => (result.status === 'fulfilled' ? result.value.close() : undefined)));
        await server.disconnect();
      })();
      return closing;
    },
  };
}

interface OpenQueue extends JobQueue {
  counts(): Promise<JobCounts>;
  close(): Promise<void>;
}

async function openQueue(
  server: JobServer,
  { name, logger }: { name: QueueName; logger: StorageLogger | undefined },
): Promise<OpenQueue> {
  const queue = await server.openQueue(name);
  queue.on('error', (error) => logger?.warn({ err: error }, 'job queue connection failed'));
  const workers = new Set<JobWorker>();
  let unqueued = 0;

  /** Limits the wait, because BullMQ waits for its server for ever. */
  async function closed(closing: Promise<void>): Promise<void> {
    if ((await within(closing, { ms: CLOSED_WITHIN_MS })) === LATE) {
      logger?.warn({ queue: name }, 'a job queue could not be closed in time');
    }
  }

  return {
    async add(id, { delayMs, attempt }) {
      const delay = Math.max(0, Math.ceil(delayMs));
      if (unqueued >= MOST_UNQUEUED) throw new Error('too many jobs wait for the job server');
      unqueued += 1;
      const added = queue.add('due', { id }, { jobId: `${id}-${attempt}`, delay, ...DROP_WHEN_DONE }).finally(() => {
        unqueued -= 1;
      });
      // BullMQ waits for an unavailable Redis for ever. Producers have a sweeper for lost jobs.
      if ((await within(added, { ms: ADDED_WITHIN_MS })) === LATE) throw new Error('the job server does not respond');
    },

    async work(handler, { concurrency }) {
      const running = new Set<Promise<void>>();
      const handle: JobHandler = async (id) => {
        const job = handler(id);
        running.add(job);
        await job.finally(() => running.delete(job));
      };
      const worker = server.startWorker(name, handle, concurrency);
      worker.on('error', (error) => logger?.warn({ err: error }, 'job worker connection failed'));
      worker.on('failed', (job, error) => logger?.error({ err: error, queue: name, id: job?.data.id }, 'a job failed'));
      const opened: JobWorker = {
        async close() {
          workers.delete(opened);
          const closing = worker.close();
          await Promise.allSettled(running);
          await closed(closing);
        },
      };
      workers.add(opened);
      await worker.waitUntilReady();
      return opened;
    },

    async counts() {
      const { wait = 0, active = 0, delayed = 0 } = await queue.getJobCounts('wait', 'active', 'delayed');
      return { waiting: wait, active, delayed };
    },

    async close() {
      await Promise.all([...workers].map((worker) => worker.close()));
      await closed(queue.close());
    },
  };
}

/** Otherwise jobs would fill the memory during a long outage. */
export const MOST_UNQUEUED = 10_000;
const ADDED_WITHIN_MS = 5_000;
const CLOSED_WITHIN_MS = 3_000;
/** Disables BullMQ's retries, and frees a job's id when the job ends. */
const DROP_WHEN_DONE = { attempts: 1, removeOnComplete: true, removeOnFail: true };

interface JobData {
  id: string;
}

type JobHandler = (id: string) => Promise<void>;

interface JobServer {
  openQueue(name: QueueName): Promise<BackendQueue>;
  startWorker(name: QueueName, handler: JobHandler, concurrency: number): BackendWorker;
  readonly ping: Jobs['pingRedis'];
  disconnect(): Promise<void>;
}

interface BackendQueue {
  add(name: string, data: JobData, options: JobsOptions): Promise<unknown>;
  getJobCounts(...types: ('wait' | 'active' | 'delayed')[]): Promise<Partial<Record<string, number>>>;
  close(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

interface BackendWorker {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'failed', listener: (job: { data: JobData } | undefined, error: Error) => void): unknown;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

async function onPostgres({ databaseUrl, namespace, connectTimeoutMs, logger }: OpenJobsOptions): Promise<JobServer> {
  const probe = connect({ url: databaseUrl, max: 1, connectTimeoutMs, logger });
  try {
    await probe`select 1`;
  } catch (error) {
    throw unavailable('Postgres', error);
  } finally {
    await probe.end({ timeout: 0 });
  }
  const connection = jobConnection({ databaseUrl, namespace: namespace ?? 'tandem', max: 4 });
  return {
    openQueue: (name) => ready(new Queue(name, { connection }, createPostgresBackend), 'Postgres'),
    startWorker: (name, handler, concurrency) =>
      new Worker(
        name,
        (job: Job<JobData>) => handler(job.data.id),
        { connection, concurrency, ...WORKER_OPTIONS },
        createPostgresBackend,
      ),
    ping: null,
    disconnect: async () => {},
  };
}

async function ready(
  queue: BackendQueue & { waitUntilReady(): Promise<unknown> },
  server: string,
): Promise<BackendQueue> {
  try {
    await queue.waitUntilReady();
    return queue;
  } catch (error) {
    await queue.close();
    throw unavailable(server, error);
  }
}

async function onRedis(
  { namespace, connectTimeoutMs = 5_000, logger }: OpenJobsOptions,
  redisUrl: string,
): Promise<JobServer> {
  const options = { lazyConnect: true, connectTimeout: connectTimeoutMs };
  // The probe gives up at once. The real connection never does, as BullMQ requires.
  const probe = new Redis(redisUrl, { ...options, maxRetriesPerRequest: 0, retryStrategy: () => null });
  let lastError: unknown;
  probe.on('error', (error) => {
    lastError = error;
  });
  try {
    await probe.connect();
    await probe.ping();
  } catch (error) {
    throw unavailable('Redis', lastError ?? error);
  } finally {
    probe.disconnect();
  }
  const client = new Redis(redisUrl, { ...options, maxRetriesPerRequest: null });
  client.on('error', (error) => logger?.warn({ err: error }, 'redis connection failed'));
  const connection = client as unknown as RedisClient;
  const prefix = namespace ?? 'tandem';
  return {
    openQueue: (name) => ready(new Queue(name, { connection, prefix }), 'Redis'),
    startWorker: (name, handler, concurrency) =>
      new Worker(name, (job: Job<JobData>) => handler(job.data.id), {
        connection,
        prefix,
        concurrency,
        ...WORKER_OPTIONS,
      }),
    async ping() {
      // While Redis is away, the client would queue commands.
      if (client.status !== 'ready' && client.status !== 'wait') throw new Error('Redis is not connected.');
      await client.ping();
    },
    disconnect: async () => {
      if (client.status === 'ready') await client.quit().catch(() => {});
      client.disconnect();
    },
  };
}

const WORKER_OPTIONS = {
  // For jobs queued by an older version with other options.
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
  /** Pause of a worker whose server was away. BullMQ's default is 15 s, during which jobs wait. */
  runRetryDelay: 1_000,
};

function unavailable(server: string, cause: unknown): TandemError {
  const reason = cause instanceof Error ? cause.message || (cause as { code?: string }).code : String(cause);
  return new TandemError('STORAGE_UNAVAILABLE', `Cannot use ${server} for the job queue: ${reason}`, { cause });
}
