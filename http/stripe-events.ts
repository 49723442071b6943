import Stripe from 'stripe';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/schema';
import { TandemError } from '../machines/errors.ts';
import { firstCharacters } from '../runtime/first-characters.ts';
import type { PaymentNews, PaymentStatus, ReportedPayment, ReportedReversal } from '../storage/queries/payments.ts';

/** Maximum age of a signature, against replays of a captured request. */
const TOLERANCE_S = 300;

/**
 * Verifies a Stripe webhook request and reads its payment. Null if it does not concern a wallet.
 * @throws TandemError WEBHOOK_SIGNATURE_INVALID, MALFORMED_JSON, VALIDATION_FAILED
 */
export function readStripeEvent(
  body: Buffer,
  { signature, secret, now }: { signature: string | undefined; secret: string; now: Date },
): PaymentNews | null {
  const event = verified(body, { signature, secret, now });
  const reader = Object.hasOwn(READERS, event.type) ? READERS[event.type] : undefined;
  if (reader === undefined) return null;
  const news = reader(event.data.object);
  if (news === null) return null;
  return {
    ...{ payment: null, names: [], reversals: [], ...news },
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

type StripeNews = Partial<Pick<PaymentNews, 'payment' | 'names' | 'reversals'>>;

/**
 * Reads an event's object, by event type. Other types are ignored. Only these two dispute events report that
 * money moved: a created dispute may be an inquiry, and a closed one may never have cost any.
 */
const READERS: Readonly<Record<string, (object: unknown) => StripeNews | null>> = {
  'payment_intent.succeeded': (object) => fromPaymentIntent(object, 'succeeded'),
  'payment_intent.processing': (object) => fromPaymentIntent(object, 'pending'),
  'payment_intent.payment_failed': (object) => fromPaymentIntent(object, 'failed'),
  'payment_intent.canceled': (object) => fromPaymentIntent(object, 'failed'),
  'invoice.paid': (object) => fromInvoice(object, 'succeeded'),
  'invoice.payment_failed': (object) => fromInvoice(object, 'failed'),
  'invoice_payment.paid': fromInvoicePayment,
  'charge.refunded': fromRefundedCharge,
  'charge.refund.updated': fromRefund,
  'refund.created': fromRefund,
  'refund.updated': fromRefund,
  'refund.failed': fromRefund,
  'charge.dispute.funds_withdrawn': (object) => fromDispute(object, { isUndone: false }),
  'charge.dispute.funds_reinstated': (object) => fromDispute(object, { isUndone: true }),
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
const Id = Type.String({ minLength: 1, maxLength: 255 });
/** Id of another object, or the whole object if expanded. */
const Reference = Type.Optional(Type.Unknown());
const PaymentIntentSchema = Type.Object({
  id: Id,
  amount: Amount,
  amount_received: Type.Optional(Amount),
  currency: Currency,
  metadata: Metadata,
  description: Text,
  // Invoice of the payment in API versions before 2025-03-31.
  invoice: Reference,
});
const InvoiceSchema = Type.Object({
  id: Id,
  amount_paid: Amount,
  amount_due: Amount,
  currency: Currency,
  metadata: Metadata,
  description: Text,
  // Metadata of the subscription, in later and earlier API versions.
  parent: Type.Optional(Type.Unknown()),
  subscription_details: Type.Optional(Type.Unknown()),
  // In API versions before 2025-03-31; later ones send invoice_payment.paid.
  payment_intent: Reference,
});
const InvoicePaymentSchema = Type.Object({
  invoice: Id,
  payment: Type.Object({ payment_intent: Reference }),
});
const ChargeSchema = Type.Object({
  id: Id,
  /** Total of all refunds. */
  amount_refunded: Amount,
  currency: Currency,
  payment_intent: Reference,
  invoice: Reference,
});
const RefundSchema = Type.Object({
  id: Id,
  amount: Amount,
  currency: Currency,
  status: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  payment_intent: Reference,
});
const DisputeSchema = Type.Object({ id: Id, amount: Amount, currency: Currency, payment_intent: Reference });
const checkEvent = Compile(EventSchema);
const checkId = Compile(Id);
const checkPaymentIntent = Compile(PaymentIntentSchema);
const checkInvoice = Compile(InvoiceSchema);
const checkInvoicePayment = Compile(InvoicePaymentSchema);
const checkCharge = Compile(ChargeSchema);
const checkRefund = Compile(RefundSchema);
const checkDispute = Compile(DisputeSchema);

function fromPaymentIntent(object: unknown, status: PaymentStatus): StripeNews | null {
  const intent = required(checkPaymentIntent, object);
  const workspaceId = intent.metadata?.workspace_id;
  // Events of the invoice report the progress of its payment.
  if (workspaceId === undefined || (intent.invoice ?? null) !== null) return null;
  const amount = status === 'succeeded' ? (intent.amount_received ?? intent.amount) : intent.amount;
  return paymentOf({ ...intent, amount, workspaceId, status, paymentType: 'one_time', fallback: 'Card payment' });
}

function fromInvoice(object: unknown, status: PaymentStatus): StripeNews | null {
  const invoice = required(checkInvoice, object);
  const workspaceId =
    invoice.metadata?.workspace_id ??
    workspaceOf((invoice.parent as SubscriptionParent)?.subscription_details) ??
    workspaceOf(invoice.subscription_details as SubscriptionDetails);
  if (workspaceId === undefined) return null;
  const amount = status === 'succeeded' ? invoice.amount_paid : invoice.amount_due;
  const news = paymentOf({
    ...invoice,
    amount,
    workspaceId,
    status,
    paymentType: 'subscription',
    fallback: 'Subscription',
  });
  return news && { ...news, names: namesOf(invoice.id, invoice.payment_intent) };
}

function fromInvoicePayment(object: unknown): StripeNews | null {
  const { invoice, payment } = required(checkInvoicePayment, object);
  const names = namesOf(invoice, payment.payment_intent);
  return names.length === 0 ? null : { names };
}

function fromRefundedCharge(object: unknown): StripeNews | null {
  const { invoice, ...charge } = required(checkCharge, object);
  const news = reversalOf({ ...charge, amount: charge.amount_refunded }, { kind: 'refunded_in_all', isUndone: false });
  const invoiceId = idOf(invoice);
  return news && invoiceId !== null ? { ...news, names: namesOf(invoiceId, charge.payment_intent) } : news;
}

function fromRefund(object: unknown): StripeNews | null {
  const { status, ...refund } = required(checkRefund, object);
  return reversalOf(refund, { kind: 'refund', isUndone: status === 'failed' || status === 'canceled' });
}

function fromDispute(object: unknown, { isUndone }: { isUndone: boolean }): StripeNews | null {
  return reversalOf(required(checkDispute, object), { kind: 'dispute', isUndone });
}

interface ReversalParts {
  id: string;
  amount: number;
  currency: string;
  payment_intent?: unknown;
}

/** Null without a payment intent, because only those top up wallets. */
function reversalOf(
  { id, amount, currency, payment_intent }: ReversalParts,
  news: Pick<ReportedReversal, 'kind' | 'isUndone'>,
): StripeNews | null {
  const paymentName = idOf(payment_intent);
  if (paymentName === null) return null;
  return { reversals: [{ ...news, id, paymentName, ...moneyOf(amount, currency) }] };
}

function namesOf(invoiceId: string, intent: unknown): PaymentNews['names'] {
  const name = idOf(intent);
  return name === null ? [] : [{ name, providerPaymentId: invoiceId }];
}

function idOf(reference: unknown): string | null {
  const id = typeof reference === 'object' ? (reference as { id?: unknown } | null)?.id : reference;
  return checkId.Check(id) ? id : null;
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

/** Null for a free trial, which moves no money. */
function paymentOf({ id, amount, description, fallback, ...parts }: PaymentParts): { payment: ReportedPayment } | null {
  if (amount === 0) return null;
  const payment = {
    providerPaymentId: id,
    workspaceId: parts.workspaceId,
    status: parts.status,
    paymentType: parts.paymentType,
    ...moneyOf(amount, parts.currency),
    description: firstCharacters(description ?? fallback, 500),
  };
  return { payment };
}

function moneyOf(amount: number, code: string): { amountNano: bigint; currency: string } {
  const currency = code.toUpperCase();
  return { amountNano: BigInt(amount) * 10n ** BigInt(9 - decimalsOf(currency)), currency };
}

/** Zero- and three-decimal currencies (https://docs.stripe.com/currencies). */
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
