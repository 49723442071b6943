import type { LimitStore } from './limit-store.ts';
import { createMemoryLimitStore } from './memory-limit-store.ts';

export interface FailoverOptions {
  /** Time to avoid the shared store after a failure. Default 1 000 ms. */
  retryAfterMs?: number;
  logger: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Uses the shared store while it responds, and this process's counts otherwise. So an outage rejects no client within
 * the limits, and still limits guessing of keys. Leases return to the shared store with their next renewal.
 */
export function failOver(shared: LimitStore, { retryAfterMs = 1_000, logger }: FailoverOptions): LimitStore {
  const own = createMemoryLimitStore();
  let isAway = false;
  let retryAtMs = 0;

  async function preferShared<T>(work: (store: LimitStore) => Promise<T>): Promise<T> {
    const now = performance.now();
    if (isAway && now < retryAtMs) return await work(own);
    // One request tests the connection; the others do not wait for it.
    retryAtMs = now + retryAfterMs;
    try {
      const result = await work(shared);
      if (isAway) logger.info({}, 'Redis reachable again: limits are shared');
      isAway = false;
      return result;
    } catch (error) {
      if (!isAway) logger.warn({ err: error }, 'Redis unreachable: limits apply to this process only');
      isAway = true;
      retryAtMs = performance.now() + retryAfterMs;
      return await work(own);
    }
  }

  return {
    count: (key, windowS) => preferShared((store) => store.count(key, windowS)),
    read: (key, windowS) => preferShared((store) => store.read(key, windowS)),
    uncount: (key, windowS) => preferShared((store) => store.uncount(key, windowS)),
    forget: (key, windowS) => preferShared((store) => store.forget(key, windowS)),
    takeLease: (lease, options) => preferShared((store) => store.takeLease(lease, options)),
    renewLeases: (leases, leaseMs) => preferShared((store) => store.renewLeases(leases, leaseMs)),
    async releaseLease(lease) {
      // Either store may have the lease.
      await own.releaseLease(lease);
      await preferShared((store) => store.releaseLease(lease));
    },
    close: () => shared.close(),
  };
}
