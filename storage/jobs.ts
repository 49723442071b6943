import { createPostgresBackend, type Job, type JobsOptions, Queue, type RedisClient, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { TandemError } from '../machines/errors.ts';
import { connect, type StorageLogger } from './database.ts';

/**
 * The queue that wakes somebody up when a delivery is due: BullMQ on Postgres, or on Redis when there is one. A job
 * holds no truth: it names a delivery row, and that row says whether, when and how often to try again. So a job that
 * fails is dropped, and a job that is lost is queued again from the row.
 */
export interface Jobs {
  /** Queues an attempt. The same delivery and attempt are queued once, however often this is called. */
  addDelivery(deliveryId: string, delayMs: number, attempt: number): Promise<void>;
  /** Starts taking jobs. `close` lets the running ones finish. */
  work(handler: (deliveryId: string) => Promise<void>, options: { concurrency: number }): Promise<JobWorker>;
  /** Closes the workers, then the connections. Idempotent. */
  close(): Promise<void>;
}

export interface JobWorker {
  close(): Promise<void>;
}

export interface OpenJobsOptions {
  databaseUrl: string;
  /** redis:// or rediss://; used instead of Postgres. */
  redisUrl?: string;
  /** Keeps installations on one server apart: the schema in Postgres, the key prefix in Redis. */
  namespace?: string;
  /** How long the first connection may take. Default 5 000 ms. */
  connectTimeoutMs?: number;
  logger?: StorageLogger;
}

const QUEUE = 'deliveries';

/** @throws TandemError `STORAGE_UNAVAILABLE` when the server cannot be reached: BullMQ itself would try for ever. */
export async function openJobs(options: OpenJobsOptions): Promise<Jobs> {
  const backend = options.redisUrl === undefined ? await onPostgres(options) : await onRedis(options, options.redisUrl);
  const { queue } = backend;
  queue.on('error', (error) => options.logger?.warn({ err: error }, 'job queue connection failed'));
  const workers = new Set<JobWorker>();
  let closing: Promise<void> | null = null;

  return {
    async addDelivery(deliveryId, delayMs, attempt) {
      await queue.add(
        'deliver',
        { deliveryId },
        { jobId: `${deliveryId}-${attempt}`, delay: Math.max(0, Math.ceil(delayMs)), ...DROP_WHEN_DONE },
      );
    },

    async work(handler, { concurrency }) {
      const worker = backend.startWorker(handler, concurrency);
      worker.on('error', (error) => options.logger?.warn({ err: error }, 'job worker connection failed'));
      worker.on('failed', (job, error) =>
        options.logger?.error({ err: error, deliveryId: job?.data.deliveryId }, 'delivery job failed'),
      );
      const handle: JobWorker = {
        async close() {
          workers.delete(handle);
          await worker.close();
        },
      };
      workers.add(handle);
      await worker.waitUntilReady();
      return handle;
    },

    close() {
      closing ??= (async () => {
        await Promise.all([...workers].map((worker) => worker.close()));
        await queue.close();
        await backend.disconnect();
      })();
      return closing;
    },
  };
}

/** BullMQ's own retries stay off, and a job's id is free again as soon as the job is over. */
const DROP_WHEN_DONE = { attempts: 1, removeOnComplete: true, removeOnFail: true };

interface DeliveryJob {
  deliveryId: string;
}

type DeliveryHandler = (deliveryId: string) => Promise<void>;

/** What `openJobs` needs of BullMQ, whatever that runs on. */
interface JobBackend {
  queue: {
    add(name: string, data: DeliveryJob, options: JobsOptions): Promise<unknown>;
    close(): Promise<void>;
    on(event: 'error', listener: (error: Error) => void): unknown;
  };
  startWorker(handler: DeliveryHandler, concurrency: number): BackendWorker;
  disconnect(): Promise<void>;
}

interface BackendWorker {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'failed', listener: (job: { data: DeliveryJob } | undefined, error: Error) => void): unknown;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

async function onPostgres({ databaseUrl, namespace, connectTimeoutMs, logger }: OpenJobsOptions): Promise<JobBackend> {
  const probe = connect({ url: databaseUrl, max: 1, connectTimeoutMs, logger });
  try {
    await probe`select 1`;
  } catch (error) {
    throw unavailable('Postgres', error);
  } finally {
    await probe.end({ timeout: 0 });
  }
  const connection = { connectionString: databaseUrl, migrate: true, schema: `${namespace ?? 'tandem'}_jobs`, max: 4 };
  const queue = new Queue(QUEUE, { connection }, createPostgresBackend);
  try {
    await queue.waitUntilReady();
  } catch (error) {
    await queue.close();
    throw unavailable('Postgres', error);
  }
  return {
    queue,
    startWorker: (handler, concurrency) =>
      new Worker(
        QUEUE,
        (job: Job<DeliveryJob>) => handler(job.data.deliveryId),
        { connection, concurrency, ...DROP_FINISHED },
        createPostgresBackend,
      ),
    disconnect: async () => {},
  };
}

async function onRedis(
  { namespace, connectTimeoutMs = 5_000, logger }: OpenJobsOptions,
  redisUrl: string,
): Promise<JobBackend> {
  const options = { lazyConnect: true, connectTimeout: connectTimeoutMs };
  // The probe gives up at once; the real connection never does, as BullMQ asks.
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
  const queue = new Queue(QUEUE, { connection, prefix });
  try {
    await queue.waitUntilReady();
  } catch (error) {
    await queue.close();
    client.disconnect();
    throw unavailable('Redis', error);
  }
  return {
    queue,
    startWorker: (handler, concurrency) =>
      new Worker(QUEUE, (job: Job<DeliveryJob>) => handler(job.data.deliveryId), {
        connection,
        prefix,
        concurrency,
        ...DROP_FINISHED,
      }),
    disconnect: async () => {
      await client.quit().catch(() => client.disconnect());
    },
  };
}

/** For jobs that an older version queued with other options. */
const DROP_FINISHED = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };

function unavailable(server: string, cause: unknown): TandemError {
  const reason = cause instanceof Error ? cause.message || (cause as { code?: string }).code : String(cause);
  return new TandemError('STORAGE_UNAVAILABLE', `Cannot use ${server} for the job queue: ${reason}`, { cause });
}
