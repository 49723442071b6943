import { createCountedMetrics } from '../../actors/observability/counted-metrics.ts';
import type { Metrics } from '../../actors/observability/metrics.ts';
import type { Readiness, ReadinessCheck } from '../../actors/observability/readiness.ts';

/** Returns the checks that the test sets. */
export class FakeReadiness implements Readiness {
  checks: ReadinessCheck[] = [{ name: 'database', ok: true, reason: null }];

  async check(): Promise<ReadinessCheck[]> {
    return this.checks;
  }
}

/** The metrics that are counted, without those that a whole platform measures. */
export function countedOnly(): Metrics {
  const { registry, contentType, requestCompleted } = createCountedMetrics();
  return { contentType, requestCompleted, render: () => registry.metrics() };
}
