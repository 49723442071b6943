export interface TokenBucket {
  take(): boolean;
}

/** A token bucket: holds up to `capacity` tokens and gains `perSecond` tokens a second. */
export function createTokenBucket(
  { capacity, perSecond }: { capacity: number; perSecond: number },
  nowMs: () => number = () => performance.now(),
): TokenBucket {
  let left = capacity;
  let countedAtMs = nowMs();
  return {
    take() {
      const atMs = nowMs();
      left = Math.min(capacity, left + ((atMs - countedAtMs) / 1000) * perSecond);
      countedAtMs = atMs;
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
