import type { NetworkTotals } from './quality.ts';

/** Sums the transports of one call. */
export function totalsOf(reports: readonly RTCStatsReport[]): NetworkTotals {
  const totals: NetworkTotals = { received: 0, lost: 0, jitterMs: 0, roundTripMs: null };
  for (const entry of reports.flatMap((report) => [...report.values()])) {
    if (entry.type === 'inbound-rtp') {
      totals.received = entry.packetsReceived ?? 0;
      totals.lost = entry.packetsLost ?? 0;
      totals.jitterMs = Math.round((entry.jitter ?? 0) * 1000);
    } else if (entry.type === 'candidate-pair' && entry.nominated && entry.currentRoundTripTime !== undefined) {
      totals.roundTripMs = Math.round(entry.currentRoundTripTime * 1000);
    }
  }
  return totals;
}
