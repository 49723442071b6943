import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { eventually } from '../eventually.ts';

/** URL of the optional Redis server. */
export const REDIS_URL = process.env.TANDEM_TEST_REDIS_URL ?? 'redis://127.0.0.1:6379';

export async function redisIsReachable(): Promise<boolean> {
  const redis = new Redis(REDIS_URL, { lazyConnect: true, connectTimeout: 1_000, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

export interface TestRedis extends AsyncDisposable {
  readonly url: string;
  drop(): Promise<void>;
}

/** The default databases, without 0, which holds test namespaces. */
const DATABASES = Array.from({ length: 15 }, (_, index) => index + 1);
/** Marks a database that belongs to tests, even after a killed run. */
const MARK = 'tandem-test';
const LEASE = 'tandem-test:lease';
const LEASE_S = 3_600;

/**
 * A Redis database for servers. Their queues have fixed names, so servers with other Postgres databases would take each
 * other's jobs. Databases with foreign keys are left alone.
 */
export async function createTestRedis(): Promise<TestRedis> {
  return await eventually(async () => {
    for (const index of DATABASES) {
      const taken = await takeDatabase(new URL(`/${index}`, REDIS_URL).href);
      if (taken !== null) return taken;
    }
    throw new Error('every database of the Redis server is in use');
  });
}

async function takeDatabase(url: string): Promise<TestRedis | null> {
  const redis = new Redis(url);
  const isFree = (await redis.set(LEASE, '', 'EX', LEASE_S, 'NX')) !== null;
  if (isFree && ((await redis.exists(MARK)) === 1 || (await redis.dbsize()) === 1)) {
    await redis.multi().flushdb().set(MARK, '').set(LEASE, '', 'EX', LEASE_S).exec();
    const drop = async () => {
      await redis.flushdb();
      await redis.quit();
    };
    return { url, drop, [Symbol.asyncDispose]: drop };
  }
  if (isFree) await redis.del(LEASE);
  await redis.quit();
  return null;
}

export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
  /** Shortens all expiries, as if the time had passed for Redis. */
  passTime(ms: number): Promise<void>;
}

export function openTestNamespace(): TestNamespace {
  const name = `tandem-test-${randomUUID()}`;
  const redis = new Redis(REDIS_URL);
  return {
    name,
    async passTime(ms) {
      for (const key of await redis.keys(`${name}*`)) {
        if ((await redis.type(key)) === 'zset') {
          for (const member of await redis.zrange(key, '0', '-1')) await redis.zincrby(key, -ms, member);
        }
        const leftMs = await redis.pttl(key);
        if (leftMs >= 0) await redis.pexpire(key, leftMs - ms);
      }
    },
    async [Symbol.asyncDispose]() {
      const keys = await redis.keys(`${name}*`);
      if (keys.length > 0) await redis.del(...keys);
      await redis.quit();
    },
  };
}
