import type { Logger } from '../logger.ts';
import { type CountedMetrics, createCountedMetrics } from './counted-metrics.ts';
import { combineObservers, type Observer } from './observer.ts';
import type { OtlpTracing, OtlpTracingOptions } from './tracing.otlp.ts';
import type { Tracing } from './tracing.ts';

export interface ObservabilitySettings {
  readonly otlpEndpoint: string | null;
  readonly otlpHeaders: readonly (readonly [name: string, value: string])[];
}

export interface Observability extends AsyncDisposable {
  readonly observer: Observer;
  readonly counted: CountedMetrics;
  /** Null unless a collector is configured. */
  readonly tracing: Tracing | null;
}

/** Opens metrics and, if a collector is configured, traces. Otherwise the trace libraries are not loaded. */
export async function openObservability(
  { otlpEndpoint: endpoint, otlpHeaders: headers }: ObservabilitySettings,
  { logger }: { logger: Logger },
): Promise<Observability> {
  const counted = createCountedMetrics();
  const tracing = endpoint === null ? null : await openTracing({ endpoint, headers, logger });
  const observers = [counted.observer, ...(tracing === null ? [] : [tracing.observer])];
  return {
    observer: combineObservers(observers, logger),
    counted,
    tracing,
    [Symbol.asyncDispose]: async () => await tracing?.[Symbol.asyncDispose](),
  };
}

async function openTracing(options: OtlpTracingOptions): Promise<OtlpTracing> {
  const { openOtlpTracing } = await import('./tracing.otlp.ts');
  return openOtlpTracing(options);
}
