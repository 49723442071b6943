/** Metrics for `http/`. Implemented in `metrics.prom-client.ts`. */
export interface Metrics {
  readonly contentType: string;
  /** Updates the gauges first. Prometheus text format. */
  render(): Promise<string>;
  requestCompleted(request: CompletedRequest): void;
}

export interface CompletedRequest {
  method: string;
  /** Route template, such as `/webhooks/:id`; `none` for an unknown path. Never the path itself. */
  route: string;
  status: number;
  durationMs: number;
}
