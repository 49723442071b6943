import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

/** 200 once calls can be placed: what a load balancer and a start-up script wait for. */
export function healthRoutes(app: HttpApp, { dialer }: HttpContext): void {
  app.get(
    '/healthz',
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['platform'],
        operationId: 'getHealth',
        summary: 'Whether calls can be placed',
        security: [],
        response: {
          200: successOf(
            Type.Object({ ready: Type.Literal(true), live_calls: Type.Integer({ examples: [3] }) }),
            'Calls can be placed.',
          ),
          ...REFUSALS,
        },
      },
    },
    async () => {
      const { ready, reasons, liveCalls } = dialer.readiness();
      if (!ready) {
        const message = `Calls cannot be placed: ${reasons.join('; ') || 'not ready yet'}.`;
        throw new TandemError('C2C_NOT_CONFIGURED', message, { details: { reasons }, retryAfterS: 1 });
      }
      return success({ ready: true, live_calls: liveCalls });
    },
  );
}
