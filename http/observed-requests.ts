import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Metrics } from '../actors/observability/metrics.ts';
import type { RequestSpan, Tracing } from '../actors/observability/tracing.ts';
import { requestScope, type TraceParent } from '../runtime/request-scope.ts';

export interface ObservedRequestsOptions {
  metrics: Pick<Metrics, 'requestCompleted'>;
  /** Null: no traces. */
  tracing: Tracing | null;
}

/** Measures and traces requests, and runs handlers in their request's scope. */
export function observeRequests(app: FastifyInstance, { metrics, tracing }: ObservedRequestsOptions): void {
  const spanOf = tracing === null ? () => null : traceRequests(app, tracing);

  // Not in an earlier hook, because receiving a body starts a new async context.
  app.addHook('preHandler', (request, reply, done) => {
    requestScope.run({ arrivedMs: performance.now() - reply.elapsedTime, span: spanOf(request) }, done);
  });

  app.addHook('onResponse', (request, reply, done) => {
    const { method } = request;
    const { statusCode: status, elapsedTime: durationMs } = reply;
    metrics.requestCompleted({ method, route: routeOf(request), status, durationMs });
    done();
  });
}

/** Traces requests. Returns a function that finds the span of a request. */
function traceRequests(app: FastifyInstance, tracing: Tracing): (request: FastifyRequest) => TraceParent | null {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();

  app.addHook('onRequest', async (request) => {
    // Probes and scrapes would dominate the traces.
    if (request.routeOptions.config?.unlimited) return;
    const { traceparent } = request.headers;
    const span = tracing.requestStarted({
      method: request.method,
      route: routeOf(request),
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    });
    spans.set(request, span);
  });
  app.addHook('onResponse', async (request, reply) => spans.get(request)?.end(reply.statusCode));
  // A client that leaves gets no response.
  app.addHook('onRequestAbort', async (request) => spans.get(request)?.end(499));
  return (request) => spans.get(request)?.parent ?? null;
}

/** Template of the route, the same for all ids. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none';
}
