export type Metric = 'mos' | 'loss_percent' | 'jitter_ms' | 'round_trip_ms';

interface Sample {
  at: string;
  packets_received: number;
  packets_lost: number;
  loss_percent: number;
  jitter_ms: number;
  round_trip_ms: number | null;
  mos: number | null;
}

interface QualityLeg {
  samples: Sample[];
}

/** Samples further apart have a gap between them, such as a hold. */
const GAP_INTERVALS = 2.5;

/**
 * Aligns the samples of all legs on one row of times, in Unix seconds. A leg's value is undefined at the times of other
 * legs, where its line continues, and null in a gap, where it breaks.
 */
export function alignedSamples({ legs, interval_s: intervalS }: { legs: readonly QualityLeg[]; interval_s: number }) {
  const timeOf = ({ at }: { at: string }) => Date.parse(at) / 1000;
  const gapsOf = ({ samples }: QualityLeg) =>
    samples.slice(1).flatMap((sample, index) => {
      const [from, to] = [timeOf(samples[index]!), timeOf(sample)];
      return to - from > GAP_INTERVALS * intervalS ? [(from + to) / 2] : [];
    });
  const times = [...new Set(legs.flatMap((leg) => [...leg.samples.map(timeOf), ...gapsOf(leg)]))].sort((a, b) => a - b);
  const valuesOf = (leg: QualityLeg, metric: Metric): (number | null | undefined)[] => {
    const known = new Map<number, number | null>(gapsOf(leg).map((time) => [time, null]));
    for (const sample of leg.samples) known.set(timeOf(sample), sample[metric]);
    return times.map((time) => known.get(time));
  };
  return { times, valuesOf };
}

/** Aggregates all samples of a leg; null if nothing was measured. */
export function summaryOf({ samples }: QualityLeg) {
  const received = sum(samples.map((sample) => sample.packets_received));
  const lost = sum(samples.map((sample) => sample.packets_lost));
  const scores = known(samples.map(({ mos }) => mos));
  const roundTrips = known(samples.map((sample) => sample.round_trip_ms));
  return {
    mos: average(scores),
    worstMos: scores.length === 0 ? null : Math.min(...scores),
    loss: received + lost === 0 ? 0 : lost / (received + lost),
    jitterMs: average(samples.map((sample) => sample.jitter_ms)),
    roundTripMs: average(roundTrips),
  };
}

function known(values: (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function average(values: number[]): number | null {
  return values.length === 0 ? null : sum(values) / values.length;
}
