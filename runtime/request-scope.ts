import { AsyncLocalStorage } from 'node:async_hooks';

/** A span of W3C Trace Context. Plain data, so that every folder can pass it on. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Bit 0: the trace is recorded. */
  traceFlags: number;
}

/** The HTTP request that started the current work. */
export interface RequestScope {
  /** Arrival time, on the monotonic clock of `performance.now()`. */
  readonly arrivedMs: number;
  /** Span of the request; null without tracing. */
  readonly span: TraceParent | null;
}

/** Only for observers; no logic may depend on it. */
export const requestScope = new AsyncLocalStorage<RequestScope>();
