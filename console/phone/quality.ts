/** Network quality of a call, measured in the browser over the last seconds. */
export interface Quality {
  readonly grade: 'good' | 'fair' | 'poor';
  /** Share of packets from the server that were lost, 0 to 1. */
  readonly loss: number;
  readonly jitterMs: number;
  /** Null until the first report. */
  readonly roundTripMs: number | null;
}

/** Totals since the start of the call, as `getStats` reports them (https://w3c.github.io/webrtc-stats/). */
export interface NetworkTotals {
  received: number;
  lost: number;
  jitterMs: number;
  roundTripMs: number | null;
}

/**
 * Thresholds where speech suffers: ITU-T G.107 (loss of G.711 without concealment) and G.114 (delay in both
 * directions).
 */
const FAIR = { loss: 0.01, jitterMs: 30, roundTripMs: 250 };
const POOR = { loss: 0.05, jitterMs: 60, roundTripMs: 500 };

/** Quality between two measurements. Null without any packets, for example at the start of a call. */
export function qualityBetween(before: NetworkTotals, now: NetworkTotals): Quality | null {
  // Late packets reduce the count of lost ones.
  const lost = Math.max(0, now.lost - before.lost);
  const expected = Math.max(0, now.received - before.received) + lost;
  if (expected === 0) return null;
  const { jitterMs, roundTripMs } = now;
  const loss = lost / expected;
  const exceeds = (limit: typeof FAIR) =>
    loss >= limit.loss || jitterMs >= limit.jitterMs || (roundTripMs ?? 0) >= limit.roundTripMs;
  return { grade: exceeds(POOR) ? 'poor' : exceeds(FAIR) ? 'fair' : 'good', loss, jitterMs, roundTripMs };
}
