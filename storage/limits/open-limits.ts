import { type FailoverOptions, failOver } from './failover-limit-store.ts';
import { createLimits, createLimitsInProcess, type LimitSettings, type Limits } from './limits.ts';
import { openRedisLimitStore } from './redis-limit-store.ts';

export interface OpenLimitsOptions extends LimitSettings, FailoverOptions {
  /** redis:// or rediss://, shared by every process that names it; in this process when null. */
  redisUrl: string | null;
  /** Keeps installations on one Redis apart. Default `tandem`. */
  namespace?: string;
}

/** Limits on Redis where there is one. A Redis that is away does not keep anything from starting or running. */
export async function openLimits(options: OpenLimitsOptions): Promise<Limits> {
  const { redisUrl, namespace, logger } = options;
  if (redisUrl === null) return createLimitsInProcess(options);
  const store = openRedisLimitStore({
    url: redisUrl,
    ...(namespace !== undefined && { namespace }),
    // The store that fails over says once that it does.
    onError: () => {},
  });
  await store.settled;
  return createLimits(failOver(store, { ...options, logger }), options);
}
