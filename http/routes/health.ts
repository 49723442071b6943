import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { mayReadMetrics } from '../metrics-access.ts';
import { REFUSALS, responseOf, success, successOf } from '../schemas/envelope.ts';

const CheckSchema = Type.Object({
  name: Type.String({
    description:
      'Checked dependency: `database`, `redis` (if configured), `disk`, `sip_server`, `media_workers`, `recognition`, `synthesis`, or `accepting_work`, which fails while the server shuts down.',
    examples: ['database'],
  }),
  ok: Type.Boolean({ examples: [true] }),
  reason: Type.Union([Type.String(), Type.Null()], {
    description: 'Why it is not ok; null when it is.',
    examples: [null],
  }),
});

/** For load balancers, orchestrators and Prometheus. */
export function healthRoutes(app: HttpApp, { readiness, metrics, metricsAccess }: HttpContext): void {
  app.get(
    '/healthz',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['platform'],
        operationId: 'getHealth',
        summary: 'Check that the process is alive',
        description:
          'Returns 200 while the process responds, whatever the state of its dependencies. Restart the process when this fails; use `GET /readyz` to decide whether it gets requests.',
        security: [],
        response: {
          200: successOf(Type.Object({ alive: Type.Literal(true) }), 'The process is alive.'),
          ...REFUSALS,
        },
      },
    },
    async () => success({ alive: true }),
  );

  app.get(
    '/readyz',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['platform'],
        operationId: 'getReadiness',
        summary: 'Check readiness',
        description:
          'Checks each dependency. Returns 200 if all are ok and the server accepts work, otherwise 503 `NOT_READY` with the same checks in `details`.',
        security: [],
        response: {
          200: successOf(
            Type.Object({ ready: Type.Literal(true), checks: Type.Array(CheckSchema) }),
            'The server accepts requests and can place calls.',
          ),
          ...REFUSALS,
        },
      },
    },
    async () => {
      const checks = await readiness.check();
      const failed = checks.filter(({ ok }) => !ok);
      if (failed.length === 0) return success({ ready: true, checks });
      const message = failed.map(({ name, reason }) => `${name}: ${reason}`).join(' ');
      throw new TandemError('NOT_READY', `Not ready. ${message}`, { details: { checks }, retryAfterS: 1 });
    },
  );

  app.get(
    '/metrics',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['platform'],
        operationId: 'getMetrics',
        summary: 'Get metrics',
        description:
          'Returns the metrics of this process in the text format of Prometheus. Only clients in a network of `METRICS_ALLOW_CIDRS` (default: this machine) and clients that send `METRICS_TOKEN` as a bearer token may read them.',
        security: [],
        response: {
          200: responseOf({
            description: 'The metrics.',
            content: { 'text/plain': { schema: Type.String({ examples: ['tandem_calls{state="bridged"} 3\n'] }) } },
          }),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      if (!mayReadMetrics(request, metricsAccess)) {
        throw new TandemError('UNAUTHORIZED', 'Send METRICS_TOKEN as a bearer token, or use an allowed network.');
      }
      return reply.header('content-type', metrics.contentType).send(await metrics.render());
    },
  );
}
