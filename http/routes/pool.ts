import { Type } from 'typebox';
import { availableNumbers, listNumbers, poolCounts } from '../../storage/queries/numbers.ts';
import { hasTrunk } from '../../storage/queries/trunks.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { E164Schema } from '../schemas/phone-number.ts';

/** Longer lists are for `GET /dialer/numbers` and `GET /dialer/numbers/available`. */
const MAX_LISTED = 1000;

export function poolRoutes(app: HttpApp, { sql }: HttpContext): void {
  app.get(
    '/dialer/pool',
    {
      config: { access: 'member' },
      schema: {
        tags: ['numbers'],
        operationId: 'getPool',
        summary: 'Numbers that can be rented, and those the workspace has',
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
  provisioned: Type.Boolean({ description: 'Whether the workspace has an active trunk (Gate T).', examples: [true] }),
  counts: Type.Object(
    { available: Type.Integer(), assigned: Type.Integer(), reserved: Type.Integer() },
    { examples: [{ available: 1, assigned: 1, reserved: 0 }] },
  ),
  available: Type.Array(E164Schema, { description: 'At most 1000.' }),
  allocated: Type.Array(E164Schema, { description: 'Rented by the workspace; at most 1000.' }),
});
