import Stripe from 'stripe';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { TandemError } from '../machines/errors.ts';
import type { PaymentNews, PaymentStatus } from '../storage/queries/payments.ts';

/** Maximum age of a signature: limits how long a captured request can be replayed. */
const TOLERANCE_S = 300;

/**
 * Verifies a Stripe webhook request and reads its payment. Null if it does not concern a wallet.
 * @throws TandemError WEBHOOK_SIGNATURE_INVALID, MALFORMED_JSON, VALIDATION_FAILED.
 */
export function readStripeEvent(
  body: Buffer,
  { signature, secret, now }: { signature: string | undefined; secret: string; now: Date },
): PaymentNews | null {
  const event = verified(body, { signature, secret, now });
  const reader = Object.hasOwn(READERS, event.type) ? READERS[event.type] : undefined;
  if (reader === undefined) return null;
  const payment = reader(event.data.object);
  if (payment === null) return null;
  return {
    ...payment,
    provider: 'stripe',
    eventId: event.id,
    eventType: event.type,
    eventTime: new Date(event.created * 1000),
    receivedAt: now,
  };
}

function verified(
  body: Buffer,
  { signature, secret, now }: { signature: string | undefined; secret: string; now: Date },
): Static<typeof EventSchema> {
  let event: unknown;
  try {
    event = Stripe.webhooks.constructEvent(body, signature ?? '', secret, TOLERANCE_S, undefined, now.getTime());
  } catch (cause) {
    if (!(cause instanceof Stripe.errors.StripeSignatureVerificationError)) {
      throw new TandemError('MALFORMED_JSON', 'The body is not a Stripe event.', { cause });
    }
    const message = 'The Stripe-Signature header does not match the body, or is too old. Check STRIPE_WEBHOOK_SECRET.';
    throw new TandemError('WEBHOOK_SIGNATURE_INVALID', message);
  }
  return required(checkEvent, event);
}

type Payment = Omit<PaymentNews, 'provider' | 'eventId' | 'eventType' | 'eventTime' | 'receivedAt'>;

/** The payment status by event type. Other types are ignored. */
const READERS: Readonly<Record<string, (object: unknown) => Payment | null>> = {
  'payment_intent.succeeded': (object) => fromPaymentIntent(object, 'succeeded'),
  'payment_intent.processing': (object) => fromPaymentIntent(object, 'pending'),
  'payment_intent.payment_failed': (object) => fromPaymentIntent(object, 'failed'),
  'payment_intent.canceled': (object) => fromPaymentIntent(object, 'failed'),
  'invoice.paid': (object) => fromInvoice(object, 'succeeded'),
  'invoice.payment_failed': (object) => fromInvoice(object, 'failed'),
};

const Amount = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Currency = Type.String({ pattern: '^[A-Za-z]{3}$' });
const Metadata = Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]));
const Text = Type.Optional(Type.Union([Type.String(), Type.Null()]));

const EventSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  type: Type.String(),
  created: Type.Integer({ minimum: 0, maximum: 99_999_999_999 }),
  data: Type.Object({ object: Type.Unknown() }),
});
const PaymentIntentSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  amount: Amount,
  amount_received: Type.Optional(Amount),
  currency: Currency,
  metadata: Metadata,
  description: Text,
  // API versions before 2025-03-31 name the paid invoice here.
  invoice: Type.Optional(Type.Unknown()),
});
const InvoiceSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  amount_paid: Amount,
  amount_due: Amount,
  currency: Currency,
  metadata: Metadata,
  description: Text,
  // Metadata of the subscription, in later and in earlier API versions.
  parent: Type.Optional(Type.Unknown()),
  subscription_details: Type.Optional(Type.Unknown()),
});
const checkEvent = Compile(EventSchema);
const checkPaymentIntent = Compile(PaymentIntentSchema);
const checkInvoice = Compile(InvoiceSchema);

function fromPaymentIntent(object: unknown, status: PaymentStatus): Payment | null {
  const intent = required(checkPaymentIntent, object);
  const workspaceId = intent.metadata?.workspace_id;
  // The invoice events report payments of invoices.
  if (workspaceId === undefined || (intent.invoice ?? null) !== null) return null;
  const amount = status === 'succeeded' ? (intent.amount_received ?? intent.amount) : intent.amount;
  return paymentOf({ ...intent, amount, workspaceId, status, paymentType: 'one_time', fallback: 'Card payment' });
}

function fromInvoice(object: unknown, status: PaymentStatus): Payment | null {
  const invoice = required(checkInvoice, object);
  const workspaceId =
    invoice.metadata?.workspace_id ??
    workspaceOf((invoice.parent as SubscriptionParent)?.subscription_details) ??
    workspaceOf(invoice.subscription_details as SubscriptionDetails);
  if (workspaceId === undefined) return null;
  const amount = status === 'succeeded' ? invoice.amount_paid : invoice.amount_due;
  return paymentOf({ ...invoice, amount, workspaceId, status, paymentType: 'subscription', fallback: 'Subscription' });
}

type SubscriptionDetails = { metadata?: { workspace_id?: unknown } | null } | null | undefined;
type SubscriptionParent = { subscription_details?: SubscriptionDetails } | null | undefined;

function workspaceOf(details: SubscriptionDetails): string | undefined {
  const id = details?.metadata?.workspace_id;
  return typeof id === 'string' ? id : undefined;
}

interface PaymentParts {
  id: string;
  amount: number;
  currency: string;
  description?: string | null;
  fallback: string;
  workspaceId: string;
  status: PaymentStatus;
  paymentType: 'one_time' | 'subscription';
}

/** Null for a payment of 0, such as a free trial. */
function paymentOf({ id, amount, description, fallback, ...parts }: PaymentParts): Payment | null {
  if (amount === 0) return null;
  const currency = parts.currency.toUpperCase();
  return {
    providerPaymentId: id,
    workspaceId: parts.workspaceId,
    status: parts.status,
    paymentType: parts.paymentType,
    amountNano: BigInt(amount) * 10n ** BigInt(9 - decimalsOf(currency)),
    currency,
    description: (description ?? fallback).slice(0, 500),
  };
}

/** https://docs.stripe.com/currencies, zero- and three-decimal currencies. */
const WITHOUT_DECIMALS = 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ');
const WITH_THREE_DECIMALS = 'BHD JOD KWD OMR TND'.split(' ');

function decimalsOf(currency: string): number {
  if (WITHOUT_DECIMALS.includes(currency)) return 0;
  return WITH_THREE_DECIMALS.includes(currency) ? 3 : 2;
}

function required<Value>(check: { Check(value: unknown): value is Value }, value: unknown): Value {
  if (check.Check(value)) return value;
  throw new TandemError('VALIDATION_FAILED', 'The event lacks fields that Stripe documents.');
}
