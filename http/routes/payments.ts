import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { takePaymentNews } from '../../storage/queries/payment-news.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { acceptRawBodies } from '../json-body.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

/** Invoices with many lines exceed the usual limit. */
const BODY_LIMIT_BYTES = 1024 * 1024;

/** Webhook endpoint of payment providers. The signature of the raw body is the credential. */
export function paymentRoutes(app: HttpApp, { sql, now, logger, stripeWebhookSecret }: HttpContext): void {
  app.register(async (scope: HttpApp) => {
    acceptRawBodies(scope);
    scope.post<{ Body: Buffer | undefined }>(
      '/billing/stripe/webhook',
      {
        config: { access: 'public' },
        bodyLimit: BODY_LIMIT_BYTES,
        // Parsed after the signature is verified.
        validatorCompiler: () => () => true,
        schema: {
          tags: ['billing'],
          operationId: 'receiveStripeEvent',
          summary: 'Receive a Stripe event',
          description:
            'Webhook endpoint for Stripe, verified with STRIPE_WEBHOOK_SECRET. Handles payment_intent.succeeded, .processing, .payment_failed and .canceled, invoice.paid and .payment_failed, invoice_payment.paid, charge.refunded, refund.created, .updated and .failed, charge.dispute.funds_withdrawn and .funds_reinstated; ignores other events. `metadata.workspace_id` of the payment intent, invoice or subscription selects the wallet. Events can arrive repeatedly and in any order: each payment is credited once. Refunds and withdrawn disputes debit the wallet, whose balance may become negative; failed refunds and reinstated disputes credit it again. Only USD is credited.',
          security: [],
          headers: Type.Object({
            'stripe-signature': Type.Optional(
              Type.String({ description: 'Signature from Stripe.', examples: ['t=1767323045,v1=5257a869e7ec...'] }),
            ),
          }),
          body: StripeEventSchema,
          response: {
            200: successOf(
              Type.Object({
                outcome: Type.Enum(['credited', 'debited', 'recorded', 'ignored', 'replayed', 'passed_over'], {
                  description:
                    '`credited`: the payment was added to the wallet, or a failed refund or won dispute was. `debited`: a refund or dispute was taken from the wallet. `recorded`: the news was stored. `ignored`: the event is older than the stored status. `replayed`: the event had been received before. `passed_over`: the event concerns no wallet.',
                }),
              }),
              'The event was received.',
            ),
            ...REFUSALS,
          },
        },
      },
      async (request) => {
        if (stripeWebhookSecret === null) {
          throw new TandemError(
            'PAYMENTS_NOT_CONFIGURED',
            'Stripe payments are not configured. Set STRIPE_WEBHOOK_SECRET.',
          );
        }
        const { 'stripe-signature': signature } = request.headers as { 'stripe-signature'?: string };
        // Load Stripe's package only on servers that take payments.
        const { readStripeEvent } = await import('../stripe-events.ts');
        const news = readStripeEvent(request.body ?? Buffer.alloc(0), {
          signature,
          secret: stripeWebhookSecret,
          now: now(),
        });
        if (news === null) return success({ outcome: 'passed_over' });
        const outcome = await takePaymentNews(sql, news);
        logger.info({ eventId: news.eventId, type: news.eventType, outcome }, 'payment event received');
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
      description: 'A Stripe event.',
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
