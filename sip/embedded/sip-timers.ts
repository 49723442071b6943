/** The timer values of RFC 3261 §17 (table 4), in milliseconds. All others are multiples of these. */
export interface SipTimers {
  /** Estimate of a round trip; 500. */
  t1Ms: number;
  /** Longest gap between retransmissions of non-INVITE requests and INVITE responses; 4000. */
  t2Ms: number;
  /** Longest time that a message may stay in the network; 5000. */
  t4Ms: number;
  /** Timer B, longest wait of an INVITE for any response; 64 * T1. Lower it to detect a dead trunk sooner. */
  inviteTimeoutMs: number;
  /** Timer D, time to acknowledge retransmitted rejections of an INVITE over UDP; 32000. */
  timerDMs: number;
}

export function sipTimers(overrides: Partial<SipTimers> = {}): SipTimers {
  const t1Ms = overrides.t1Ms ?? 500;
  return {
    t1Ms,
    t2Ms: overrides.t2Ms ?? 4000,
    t4Ms: overrides.t4Ms ?? 5000,
    inviteTimeoutMs: overrides.inviteTimeoutMs ?? 64 * t1Ms,
    timerDMs: overrides.timerDMs ?? Math.max(32_000, 64 * t1Ms),
  };
}

/** 64 * T1, the timeout of everything but Timers B and D (Timers F, H, J, L, M). */
export function giveUpMs(timers: SipTimers): number {
  return 64 * timers.t1Ms;
}
