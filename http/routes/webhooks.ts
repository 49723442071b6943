import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Caller } from '../../actors/webhooks/webhook-desk.ts';
import { listWebhookDeliveries } from '../../storage/queries/webhook-deliveries.ts';
import { getWebhook, listWebhooks } from '../../storage/queries/webhooks.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { defaultToEmptyBody } from '../empty-body.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
import {
  DeliveryStatusSchema,
  LoggedDeliverySchema,
  NewWebhookSchema,
  presentLoggedDelivery,
  presentWebhook,
  presentWebhookDelivery,
  RotatedWebhookSchema,
  RotateSecretBody,
  TestBody,
  WebhookBody,
  WebhookDeliverySchema,
  WebhookEventSchema,
  WebhookPatchBody,
  WebhookSchema,
} from '../schemas/webhook.ts';

const TAGS = ['webhooks'];
const IdParams = Type.Object({ id: Type.String({ description: 'Id of the webhook.' }) });
const DEFAULT_OVERLAP_S = 86_400;

export function webhookRoutes(app: HttpApp, { sql, webhooks }: HttpContext): void {
  app.get(
    '/webhooks',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listWebhooks',
        summary: 'List webhooks',
        description: 'Returns the webhooks of the workspace.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('webhooks', WebhookSchema), 'One page of webhooks.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { rows, total } = await listWebhooks(sql, { workspaceId }, request.query);
      return success({ webhooks: rows.map(presentWebhook), pagination: paginationOf(request.query, total) });
    },
  );

  app.post(
    '/webhooks',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'createWebhook',
        summary: 'Create a webhook',
        description:
          'Subscribes a URL to events. Deliveries are signed as specified by Standard Webhooks. A generated secret is returned only in this response.',
        body: WebhookBody,
        response: { 201: successOf(NewWebhookSchema, 'The webhook was created.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { url, events, secret = null } = request.body;
      const { webhook, mintedSecret } = await webhooks.create({ url, events, secret, by: callerOf(request) });
      return reply.code(201).send(success({ ...presentWebhook(webhook), ...once(mintedSecret) }));
    },
  );

  app.get(
    '/webhooks/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getWebhook',
        summary: 'Get a webhook',
        description: 'Returns a webhook, without its secret.',
        params: IdParams,
        response: { 200: successOf(WebhookSchema, 'The webhook.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      return success(presentWebhook(await getWebhook(sql, { id: request.params.id, workspaceId })));
    },
  );

  app.patch(
    '/webhooks/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'updateWebhook',
        summary: 'Update a webhook',
        description:
          'Changes only the fields you send. Pending deliveries go to the new URL. `status: active` enables a disabled webhook.',
        params: IdParams,
        body: WebhookPatchBody,
        response: { 200: successOf(WebhookSchema, 'The webhook was updated.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { id } = request.params;
      return success(presentWebhook(await webhooks.update({ id, patch: request.body, by: callerOf(request) })));
    },
  );

  app.delete(
    '/webhooks/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'deleteWebhook',
        summary: 'Delete a webhook',
        description: 'Deletes a webhook with its secrets and delivery log. Pending deliveries are dropped.',
        params: IdParams,
        response: {
          200: successOf(
            Type.Object(
              { id: Type.String(), deleted: Type.Literal(true) },
              { examples: [{ id: '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11', deleted: true }] },
            ),
            'The webhook was deleted.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      await webhooks.remove({ id, by: callerOf(request) });
      return success({ id, deleted: true });
    },
  );

  app.get(
    '/webhooks/:id/deliveries',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listWebhookDeliveries',
        summary: 'List the deliveries of a webhook',
        description: 'Returns the deliveries, newest first, each with a log of its attempts.',
        params: IdParams,
        querystring: Type.Object({
          ...PAGE_QUERY,
          status: Type.Optional(DeliveryStatusSchema),
          event: Type.Optional(WebhookEventSchema),
        }),
        response: {
          200: successOf(pageOf('deliveries', LoggedDeliverySchema), 'One page of deliveries.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { id: webhookId } = await getWebhook(sql, { id: request.params.id, workspaceId });
      const { status, event, ...page } = request.query;
      const { rows, total } = await listWebhookDeliveries(sql, { webhookId, status, event }, page);
      return success({ deliveries: rows.map(presentLoggedDelivery), pagination: paginationOf(page, total) });
    },
  );

  app.post(
    '/webhooks/:id/test',
    {
      config: { access: 'admin' },
      preValidation: defaultToEmptyBody,
      schema: {
        tags: TAGS,
        operationId: 'testWebhook',
        summary: 'Send a test event',
        description:
          'Sends an example event with `data.test: true`: the event in the body, or the first one that the webhook is subscribed to. List its deliveries to see the result.',
        params: IdParams,
        body: TestBody,
        response: { 202: successOf(WebhookDeliverySchema, 'The delivery was queued.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const delivery = await webhooks.test({ id, event: request.body.event ?? null, by: callerOf(request) });
      return reply.code(202).send(success(presentWebhookDelivery(delivery)));
    },
  );

  app.post(
    '/webhooks/:id/rotate-secret',
    {
      config: { access: 'admin' },
      preValidation: defaultToEmptyBody,
      schema: {
        tags: TAGS,
        operationId: 'rotateWebhookSecret',
        summary: 'Rotate the signing secret',
        description:
          'Replaces the signing secret. Until the overlap ends, the previous secrets sign too: `webhook-signature` then has one signature per secret, separated by spaces.',
        params: IdParams,
        body: RotateSecretBody,
        response: { 200: successOf(RotatedWebhookSchema, 'The secret was rotated.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { secret = null, overlap_seconds: overlapS = DEFAULT_OVERLAP_S } = request.body;
      const { id } = request.params;
      const rotated = await webhooks.rotateSecret({ id, secret, overlapMs: overlapS * 1000, by: callerOf(request) });
      return success({
        ...presentWebhook(rotated.webhook),
        ...once(rotated.mintedSecret),
        previous_secret_expires_at: rotated.previousSecretExpiresAt.toISOString(),
      });
    },
  );

  app.post(
    '/webhooks/deliveries/:id/replay',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'replayWebhookDelivery',
        summary: 'Replay a delivery',
        description:
          'Sends a delivery again with the same webhook-id and body, to the current URL of the webhook, as a new delivery with `replay_of`. While the delivery or a replay of it is pending, that one is attempted now instead.',
        params: Type.Object({ id: Type.String({ description: 'Id of the delivery.' }) }),
        response: { 202: successOf(WebhookDeliverySchema, 'The delivery was queued.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const delivery = await webhooks.replay({ deliveryId: request.params.id, by: callerOf(request) });
      return reply.code(202).send(success(presentWebhookDelivery(delivery)));
    },
  );
}

function callerOf(request: FastifyRequest): Caller {
  const { workspaceId, userId, apiKeyId } = principalOf(request);
  return { workspaceId, userId, apiKeyId, requestId: request.id };
}

/** Shows a generated secret once, and a client's secret never. */
function once(mintedSecret: string | null): { secret?: string } {
  return mintedSecret === null ? {} : { secret: mintedSecret };
}
