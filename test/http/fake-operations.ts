import { createCountedMetrics } from '../../actors/observability/counted-metrics.ts';
import type { Metrics } from '../../actors/observability/metrics.ts';
import type { Readiness, ReadinessCheck } from '../../actors/observability/readiness.ts';
import type { SystemHealth, SystemReport } from '../../actors/observability/system-health.ts';

export class FakeReadiness implements Readiness {
  checks: ReadinessCheck[] = [{ name: 'database', ok: true, reason: null }];

  async check(): Promise<ReadinessCheck[]> {
    return this.checks;
  }
}

export class FakeSystemHealth implements SystemHealth {
  current: SystemReport = {
    checks: [{ id: 'runtime', name: 'runtime', status: 'ok', message: 'Node 24', action: null }],
    checkedAt: new Date(0),
    nodes: [],
    media: { sessions: 0, maxSessions: 10, load: 0, workers: [{ utilization: 0, latenessMs: 0 }] },
    recognition: { isRunning: true, engines: [] },
    synthesis: { isRunning: true, engines: [] },
    languageModels: [],
    downloads: [],
    queues: [],
    versions: { tandem: '0.0.0', node: '24.0.0', postgres: null },
  };

  async report(): Promise<SystemReport> {
    return this.current;
  }
}

/** Counters only, without the gauges of a whole platform. */
export function countedOnly(): Metrics {
  const { registry, contentType, requestCompleted } = createCountedMetrics();
  return { contentType, requestCompleted, render: () => registry.metrics() };
}
