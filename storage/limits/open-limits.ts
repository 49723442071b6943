import { type FailoverOptions, failOver } from './failover-limit-store.ts';
import { createLimits, createLimitsInProcess, type LimitSettings, type Limits } from './limits.ts';
import { openRedisLimitStore } from './redis-limit-store.ts';

export interface OpenLimitsOptions extends LimitSettings, FailoverOptions {
  /** redis:// or rediss://, shared by all processes with this URL. Null: limits are in this process. */
  redisUrl: string | null;
  /** Separates installations on one Redis. Default `tandem`. */
  namespace?: string;
}

/** Opens limits on Redis if configured. The server starts and runs even if Redis is away. */
export async function openLimits(options: OpenLimitsOptions): Promise<Limits> {
  const { redisUrl, namespace, logger } = options;
  if (redisUrl === null) return createLimitsInProcess(options);
  const store = openRedisLimitStore({
    url: redisUrl,
    ...(namespace !== undefined && { namespace }),
    // The failover store logs failures once.
    onError: () => {},
  });
  await store.settled;
  return createLimits(failOver(store, { ...options, logger }), options);
}
