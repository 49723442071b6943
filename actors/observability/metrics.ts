/** Metrics as `http/` sees them. Implemented in `metrics.prom-client.ts`. */
export interface Metrics {
  /** The Content-Type of `render`. */
  readonly contentType: string;
  /** Measures what is measured on demand, and returns everything in the text format of Prometheus. */
  render(): Promise<string>;
  requestCompleted(request: CompletedRequest): void;
}

export interface CompletedRequest {
  method: string;
  /** The template, such as `/webhooks/:id`; `none` for an unknown path. Never the path itself. */
  route: string;
  status: number;
  durationMs: number;
}
