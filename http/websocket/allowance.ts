export interface Allowance {
  /** False: it is used up. */
  take(): boolean;
}

/** So much may be used at once, and so much comes back in a second (a token bucket). */
export function createAllowance(
  { atOnce, perSecond }: { atOnce: number; perSecond: number },
  nowMs: () => number = () => performance.now(),
): Allowance {
  let left = atOnce;
  let countedAtMs = nowMs();
  return {
    take() {
      const atMs = nowMs();
      left = Math.min(atOnce, left + ((atMs - countedAtMs) / 1000) * perSecond);
      countedAtMs = atMs;
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
