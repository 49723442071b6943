import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { Lease, LimitStore } from './limit-store.ts';

export interface RedisLimitStoreOptions {
  /** redis:// or rediss:// */
  url: string;
  /** Separates installations on one server. Default `tandem`. */
  namespace?: string;
  onError: (error: Error) => void;
}

export interface RedisLimitStore extends LimitStore {
  /** Resolves after the first response or failure; connecting continues. */
  settled: Promise<void>;
}

/** Shares counts and leases among all processes on one Redis. Methods fail at once while Redis is away. */
export function openRedisLimitStore(options: RedisLimitStoreOptions): RedisLimitStore {
  const redis = new Redis(options.url, {
    commandTimeout: 500,
    connectTimeout: 5_000,
    // Requests do not wait for a lost server, and pending commands are not counted twice.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
  });
  const settled = new Promise<void>((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
  redis.on('error', options.onError);
  redis.defineCommand('tandemTakeLease', { numberOfKeys: 1, lua: TAKE_LEASE });
  redis.defineCommand('tandemRenewLease', { numberOfKeys: 1, lua: RENEW_LEASE });
  const scripts = redis as Redis & LeaseScripts;

  const namespace = `${options.namespace ?? 'tandem'}:limits`;
  const leaseKey = ({ key }: Lease) => `${namespace}:leases:${key}`;
  const limiters = new Map<number, RateLimiterRedis>();

  function limiterOf(windowS: number): RateLimiterRedis {
    let limiter = limiters.get(windowS);
    limiter ??= new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${namespace}:window:${windowS}`,
      // The library only counts, because the caller decides on the limit.
      points: Number.MAX_SAFE_INTEGER,
      duration: windowS,
      rejectIfRedisNotReady: true,
    });
    limiters.set(windowS, limiter);
    return limiter;
  }

  return {
    settled,

    async count(key, windowS) {
      const { consumedPoints, msBeforeNext } = await limiterOf(windowS).consume(key);
      return { used: consumedPoints, msLeft: msBeforeNext };
    },

    async read(key, windowS) {
      const window = await limiterOf(windowS).get(key);
      return window === null ? null : { used: window.consumedPoints, msLeft: window.msBeforeNext };
    },

    async uncount(key, windowS) {
      if ((await limiterOf(windowS).get(key)) !== null) await limiterOf(windowS).reward(key);
    },

    async forget(key, windowS) {
      await limiterOf(windowS).delete(key);
    },

    async takeLease(lease, { limit, leaseMs }) {
      return (await scripts.tandemTakeLease(leaseKey(lease), lease.leaseId, limit, leaseMs)) === 1;
    },

    async renewLeases(leases, leaseMs) {
      await Promise.all(leases.map((lease) => scripts.tandemRenewLease(leaseKey(lease), lease.leaseId, leaseMs)));
    },

    async releaseLease(lease) {
      await redis.zrem(leaseKey(lease), lease.leaseId);
    },

    async close() {
      await redis.quit().catch(() => redis.disconnect());
    },
  };
}

interface LeaseScripts {
  tandemTakeLease(key: string, leaseId: string, limit: number, leaseMs: number): Promise<0 | 1>;
  tandemRenewLease(key: string, leaseId: string, leaseMs: number): Promise<void>;
}

/** Leases of a key are a sorted set: the member is the lease, the score its expiry by Redis time. */
const NOW_MS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

const TAKE_LEASE = `${NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`;

const RENEW_LEASE = `${NOW_MS}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;
