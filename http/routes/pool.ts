import { Type } from 'typebox';
import { availableNumbers, listNumbers, poolCounts } from '../../storage/queries/numbers.ts';
import { hasTrunk } from '../../storage/queries/trunks.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { E164Schema } from '../schemas/phone-number.ts';

/** `GET /dialer/numbers` and `GET /dialer/numbers/available` return the full lists. */
const MAX_LISTED = 1000;

export function poolRoutes(app: HttpApp, { sql }: HttpContext): void {
  app.get(
    '/dialer/pool',
    {
      config: { access: 'member' },
      schema: {
        tags: ['numbers'],
        operationId: 'getPool',
        summary: 'Get the number pool',
        description: 'Returns the numbers that the workspace rents and those it can rent, up to 1000 of each.',
        response: { 200: successOf(PoolSchema, 'The number pool.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const [provisioned, counts, available, allocated] = await Promise.all([
        hasTrunk(sql, workspaceId),
        poolCounts(sql, { workspaceId }),
        availableNumbers(sql, { workspaceId, limit: MAX_LISTED }),
        listNumbers(sql, { workspaceId }, { page: 1, limit: MAX_LISTED }),
      ]);
      return success({
        provisioned,
        counts,
        available: available.map(({ e164 }) => e164),
        allocated: allocated.rows.map(({ e164 }) => e164),
      });
    },
  );
}

const PoolSchema = Type.Object({
  provisioned: Type.Boolean({ description: 'True if the workspace has an active trunk.', examples: [true] }),
  counts: Type.Object(
    {
      available: Type.Integer({ description: 'Numbers you can rent.' }),
      assigned: Type.Integer({ description: 'Numbers the workspace rents.' }),
      reserved: Type.Integer({ description: 'Numbers held back.' }),
    },
    { examples: [{ available: 1, assigned: 1, reserved: 0 }] },
  ),
  available: Type.Array(E164Schema, { description: 'Numbers you can rent, at most 1000.' }),
  allocated: Type.Array(E164Schema, { description: 'Numbers the workspace rents, at most 1000.' }),
});
