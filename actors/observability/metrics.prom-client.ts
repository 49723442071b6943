import { collectDefaultMetrics, Registry } from 'prom-client';
import type { CountedMetrics } from './counted-metrics.ts';
import { createMeasuredGauges, type MeasuredGaugesOptions } from './measured-gauges.ts';
import type { Metrics } from './metrics.ts';

export interface MetricsOptions extends Omit<MeasuredGaugesOptions, 'registry'> {
  counted: CountedMetrics;
}

/** Metrics of one platform and of its process. */
export function createMetrics({ counted, ...options }: MetricsOptions): Metrics {
  const { registry, contentType, requestCompleted } = counted;
  const measure = createMeasuredGauges({ ...options, registry });
  const all = Registry.merge([metricsOfProcess(), registry]);
  return {
    contentType,
    requestCompleted,
    async render() {
      await measure();
      return await all.metrics();
    },
  };
}

let ofProcess: Registry | null = null;

/**
 * Memory, CPU, event-loop delay and garbage collection. Starts the probes once, because they run as long as the
 * process.
 */
function metricsOfProcess(): Registry {
  if (ofProcess === null) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}
