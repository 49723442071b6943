import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { takePaymentNews } from '../../storage/queries/payments.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { acceptRawBodies } from '../json-body.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { readStripeEvent } from '../stripe-events.ts';

/** An invoice of many lines is larger than what clients may send. */
const BODY_LIMIT_BYTES = 1024 * 1024;

/** What payment providers call: the signature over the very bytes of the body is the credential. */
export function paymentRoutes(app: HttpApp, { sql, now, logger, stripeWebhookSecret }: HttpContext): void {
  app.register(async (scope: HttpApp) => {
    acceptRawBodies(scope);
    scope.post<{ Body: Buffer | undefined }>(
      '/billing/stripe/webhook',
      {
        config: { access: 'public' },
        bodyLimit: BODY_LIMIT_BYTES,
        // The bytes are looked at once the signature was.
        validatorCompiler: () => () => true,
        schema: {
          tags: ['billing'],
          operationId: 'receiveStripeEvent',
          summary: 'Where Stripe tells of payments',
          description:
            'Takes payment_intent.succeeded, .processing, .payment_failed and .canceled, invoice.paid and invoice.payment_failed, verified with STRIPE_WEBHOOK_SECRET; other events are passed over. `metadata.workspace_id` of the payment intent, invoice or subscription names the wallet. Each event counts once, each payment is credited once, in whatever order they arrive; only USD is credited.',
          security: [],
          headers: Type.Object({
            'stripe-signature': Type.Optional(Type.String({ examples: ['t=1767323045,v1=5257a869e7ec...'] })),
          }),
          body: StripeEventSchema,
          response: {
            200: successOf(
              Type.Object({ outcome: Type.Enum(['credited', 'recorded', 'ignored', 'replayed', 'passed_over']) }),
              'Taken in: `ignored` was older than what is known, `passed_over` concerns no wallet.',
            ),
            ...REFUSALS,
          },
        },
      },
      async (request) => {
        if (stripeWebhookSecret === null) {
          throw new TandemError('PAYMENTS_NOT_CONFIGURED', 'Payments by Stripe are off: set STRIPE_WEBHOOK_SECRET.');
        }
        const { 'stripe-signature': signature } = request.headers as { 'stripe-signature'?: string };
        const news = readStripeEvent(request.body ?? Buffer.alloc(0), {
          signature,
          secret: stripeWebhookSecret,
          now: now(),
        });
        if (news === null) return success({ outcome: 'passed_over' });
        const outcome = await takePaymentNews(sql, news);
        logger.info({ eventId: news.eventId, type: news.eventType, outcome }, 'payment event taken in');
        return success({ outcome });
      },
    );
  });
}

const StripeEventSchema = Type.Unsafe<Buffer>(
  Type.Object(
    { id: Type.String(), type: Type.String(), created: Type.Integer(), data: Type.Object({}) },
    {
      additionalProperties: true,
      description: 'An event as Stripe sends it.',
      examples: [
        {
          id: 'evt_1',
          object: 'event',
          type: 'payment_intent.succeeded',
          created: 1767323045,
          data: {
            object: {
              id: 'pi_1',
              object: 'payment_intent',
              amount: 2500,
              amount_received: 2500,
              currency: 'usd',
              metadata: { workspace_id: '00000000-0000-4000-8000-000000000000' },
            },
          },
        },
      ],
    },
  ),
);
