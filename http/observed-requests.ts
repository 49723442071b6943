import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Metrics } from '../actors/observability/metrics.ts';
import type { RequestSpan, Tracing } from '../actors/observability/tracing.ts';
import { requestScope, type TraceParent } from '../runtime/request-scope.ts';

export interface ObservedRequestsOptions {
  metrics: Pick<Metrics, 'requestCompleted'>;
  /** Null: nothing is traced. */
  tracing: Tracing | null;
}

/** Measures and traces requests, and runs handlers in the scope of their request. */
export function observeRequests(app: FastifyInstance, { metrics, tracing }: ObservedRequestsOptions): void {
  const spanOf = tracing === null ? () => null : traceRequests(app, tracing);

  // Not earlier: the context of a hook ends where the body begins to be received.
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

/** Returns what finds the span of a request. */
function traceRequests(app: FastifyInstance, tracing: Tracing): (request: FastifyRequest) => TraceParent | null {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();

  app.addHook('onRequest', async (request) => {
    // Probes and scrapes would be most of the traces.
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
  // A client that gives up gets no response.
  app.addHook('onRequestAbort', async (request) => spans.get(request)?.end(499));
  return (request) => spans.get(request)?.parent ?? null;
}

/** The template of the route, which is the same for all ids in it. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none';
}
