import { TandemError } from '../../machines/errors.ts';
import { operatorWorkspaceId } from '../../storage/queries/workspaces.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { presentSystemHealth, SystemHealthSchema } from '../schemas/system-health.ts';

export function systemHealthRoutes(app: HttpApp, { sql, systemHealth }: HttpContext): void {
  app.get(
    '/system/health',
    {
      config: { access: 'admin' },
      schema: {
        tags: ['platform'],
        operationId: 'getSystemHealth',
        summary: 'Get the health of the system',
        description:
          'Returns what `tandem doctor` checks, with the nodes, media workers, speech engines, language models, downloads and queues. Takes up to 10 seconds if a dependency does not respond. Only admins and owners of the first workspace of the server; others get FORBIDDEN. Tandem extension.',
        response: { 200: successOf(SystemHealthSchema, 'The health of the system.'), ...REFUSALS },
      },
    },
    async (request) => {
      if ((await operatorWorkspaceId(sql)) !== principalOf(request).workspaceId) {
        throw new TandemError('FORBIDDEN', 'Only the first workspace of the server can see the health of the system.');
      }
      return success(presentSystemHealth(await systemHealth.report()));
    },
  );
}
