import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

/** The Redis that tests may use; it need not be there. */
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

/** Keys of one test, dropped with it. */
export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
  /** Brings everything in it nearer to its end, as if the time had passed for Redis. */
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
