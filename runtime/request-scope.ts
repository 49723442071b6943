import { AsyncLocalStorage } from 'node:async_hooks';

/** A span as W3C Trace Context names it. Plain data, so that every folder can pass it on. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Bit 0: the trace is recorded. */
  traceFlags: number;
}

/** The HTTP request that the current work was started for. */
export interface RequestScope {
  /** When it arrived, on the monotonic clock of `performance.now()`. */
  readonly arrivedMs: number;
  /** The span of the request; null without tracing. */
  readonly span: TraceParent | null;
}

/** Observers read it; nothing else may depend on it. */
export const requestScope = new AsyncLocalStorage<RequestScope>();
