import { Type } from 'typebox';
import { inTransaction } from '../../storage/database.ts';
import { setDefaultCallerId } from '../../storage/queries/trunks.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { requireTrunk } from '../playback.ts';
import { recordAction } from '../recorded-action.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { E164Schema, requireE164 } from '../schemas/phone-number.ts';

export function callerIdRoutes(app: HttpApp, context: HttpContext): void {
  app.put(
    '/dialer/caller-id',
    {
      config: { access: 'writer' },
      schema: {
        tags: ['numbers'],
        operationId: 'setCallerId',
        summary: 'Set the default caller ID',
        description:
          'Sets the caller ID of calls that are placed without `did`. The number must be rented by the workspace.',
        body: Type.Object({ caller_id: E164Schema }, { additionalProperties: false }),
        response: {
          200: successOf(Type.Object({ default_caller_id: E164Schema }), 'The default caller ID was saved.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const e164 = requireE164('caller_id', request.body.caller_id);
      await requireTrunk(context, principal);
      const saved = await inTransaction(context.sql, async (tx) => {
        const changed = await setDefaultCallerId(tx, { workspaceId: principal.workspaceId, e164 });
        const target = { type: 'trunk', id: changed.trunkId };
        await recordAction(tx, request, {
          action: 'caller_id.changed',
          target,
          details: { caller_id: e164 },
          now: context.now(),
        });
        return changed;
      });
      return success({ default_caller_id: saved.defaultCallerId });
    },
  );
}
