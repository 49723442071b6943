import { Type } from 'typebox';
import type { CallRow } from '../../storage/queries/calls.ts';
import { listCallDeliveries } from '../../storage/queries/webhook-deliveries.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallNameSchema, CallParams } from '../schemas/call.ts';
import {
  CallDeliverySchema,
  LoggedCallDeliverySchema,
  presentCallDelivery,
  presentLoggedCallDelivery,
} from '../schemas/call-delivery.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';

const TAGS = ['click-to-call'];

interface CallDeliveriesOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callDeliveryRoutes(app: HttpApp, { context, findCall }: CallDeliveriesOptions): void {
  const { sql, webhooks } = context;

  app.get(
    '/dialer/click2call/:id/deliveries',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listCallDeliveries',
        summary: 'List the deliveries of a call',
        description:
          'Returns the callback of the call and its webhook deliveries, newest first, each with a log of its attempts. Finished deliveries are deleted after `RETENTION_DELIVERIES_DAYS`. Tandem extension.',
        params: CallParams,
        querystring: Type.Object(PAGE_QUERY),
        response: {
          200: successOf(pageOf('deliveries', LoggedCallDeliverySchema), 'One page of deliveries.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { callId } = await findCall(request.params.id, principalOf(request));
      const { rows, total } = await listCallDeliveries(sql, { callId }, request.query);
      return success({
        deliveries: rows.map(presentLoggedCallDelivery),
        pagination: paginationOf(request.query, total),
      });
    },
  );

  app.post(
    '/dialer/click2call/:id/deliveries/:delivery_id/replay',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'replayCallDelivery',
        summary: 'Replay a delivery of a call',
        description:
          'Sends a delivery again with the same event id and body, as a new delivery with `replay_of`: a callback to the `callback_url` of the call, a webhook delivery to the current URL of the webhook. While the delivery or a replay of it is pending, that one is attempted now instead. Written to the audit log. Tandem extension.',
        params: Type.Object({ id: CallNameSchema, delivery_id: Type.String({ description: 'Id of the delivery.' }) }),
        response: { 202: successOf(CallDeliverySchema, 'The delivery was queued.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { workspaceId, userId, apiKeyId } = principal;
      const { callId } = await findCall(request.params.id, principal);
      const by = { workspaceId, userId, apiKeyId, requestId: request.id };
      const delivery = await webhooks.replay({ callId, deliveryId: request.params.delivery_id, by });
      return reply.code(202).send(success(presentCallDelivery(delivery)));
    },
  );
}
