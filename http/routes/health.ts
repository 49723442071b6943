import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

/** 200 once calls can be placed. For load balancers and start-up scripts. */
export function healthRoutes(app: HttpApp, { dialer }: HttpContext): void {
  app.get(
    '/healthz',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['platform'],
        operationId: 'getHealth',
        summary: 'Check health',
        description: 'Returns 200 if the server can place calls, otherwise 503 with the reasons.',
        security: [],
        response: {
          200: successOf(
            Type.Object({
              ready: Type.Literal(true),
              live_calls: Type.Integer({ description: 'Number of live calls.', examples: [3] }),
              media_load: Type.Number({
                description:
                  'Load of the least busy media worker, 0 to 1. At 1, new calls fail with `no_free_channel`.',
                minimum: 0,
                maximum: 1,
                examples: [0.12],
              }),
            }),
            'The server can place calls.',
          ),
          ...REFUSALS,
        },
      },
    },
    async () => {
      const { ready, reasons, liveCalls, mediaLoad } = dialer.readiness();
      if (!ready) {
        const message = `Calls cannot be placed: ${reasons.join('; ') || 'not ready yet'}.`;
        throw new TandemError('C2C_NOT_CONFIGURED', message, { details: { reasons }, retryAfterS: 1 });
      }
      return success({ ready: true, live_calls: liveCalls, media_load: Number(mediaLoad.toFixed(2)) });
    },
  );
}
