import type { TraceParent } from '../../runtime/request-scope.ts';

/** Traces for `http/`. Implemented in `tracing.otlp.ts`. */
export interface Tracing {
  /** Starts the span of an HTTP request, as a child of the client's span. */
  requestStarted(request: { method: string; route: string; traceparent: string | undefined }): RequestSpan;
}

export interface RequestSpan {
  readonly parent: TraceParent;
  /** Idempotent. */
  end(status: number): void;
}
