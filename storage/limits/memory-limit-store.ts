import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import type { LimitStore, WindowCount } from './limit-store.ts';

export function createMemoryLimitStore(): LimitStore {
  const limiters = new Map<number, RateLimiterMemory>();
  /** Lease ids with their expiry, by key. */
  const leases = new Map<string, Map<string, number>>();

  function limiterOf(windowS: number): RateLimiterMemory {
    let limiter = limiters.get(windowS);
    // The library only counts, because the caller decides on the limit.
    limiter ??= new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: windowS });
    limiters.set(windowS, limiter);
    return limiter;
  }

  function liveLeases(key: string): Map<string, number> {
    const ofKey = leases.get(key) ?? new Map<string, number>();
    for (const [leaseId, endsAtMs] of ofKey) if (endsAtMs <= performance.now()) ofKey.delete(leaseId);
    return ofKey;
  }

  return {
    async count(key, windowS) {
      return countOf(await limiterOf(windowS).consume(key), windowS);
    },

    async read(key, windowS) {
      const window = await limiterOf(windowS).get(key);
      if (window === null || window.msBeforeNext <= 0) return null;
      return countOf(window, windowS);
    },

    async uncount(key, windowS) {
      if ((await limiterOf(windowS).get(key)) !== null) await limiterOf(windowS).reward(key);
    },

    async forget(key, windowS) {
      await limiterOf(windowS).delete(key);
    },

    async takeLease({ key, leaseId }, { limit, leaseMs }) {
      const live = liveLeases(key);
      if (live.size >= limit) return false;
      leases.set(key, live.set(leaseId, performance.now() + leaseMs));
      return true;
    },

    async renewLeases(held, leaseMs) {
      for (const { key, leaseId } of held) {
        leases.set(key, liveLeases(key).set(leaseId, performance.now() + leaseMs));
      }
    },

    async releaseLease({ key, leaseId }) {
      const live = liveLeases(key);
      live.delete(leaseId);
      if (live.size === 0) leases.delete(key);
    },

    async close() {},
  };
}

/** The library measures on the wall clock, which may be set back by hours. Its timer ends the window on time. */
function countOf({ consumedPoints, msBeforeNext }: RateLimiterRes, windowS: number): WindowCount {
  return { used: consumedPoints, msLeft: Math.min(msBeforeNext, windowS * 1000) };
}
